import { z } from "zod";
import type { AuditOptions } from "../../engine/events/audit-log.ts";
import type { JournalPage, LatestOptions, ReadOptions } from "../../engine/events/event-journal.ts";
import type { AdviseQuery, StatsQuery } from "../../engine/statistics/stats-query.ts";
import { type CallDeps, call, options, wait } from "./call.ts";

/** Events after a cursor. If there are none, it waits for the first. */
async function nextEvents(
  { engine, service }: CallDeps,
  asked: ReadOptions,
  longest: number,
): Promise<JournalPage> {
  const page = await engine.journal.read(asked);
  if (page.events.length > 0 || page.hasMore) return page;
  const { limit: _limit, ...filter } = asked;
  const after = page.cursor ?? asked.after ?? null;
  const stop = new AbortController();
  const timer = service.system.after(longest, () => stop.abort(), { keepAlive: true });
  try {
    for await (const _event of engine.journal.follow({ ...filter, after, signal: stop.signal })) break;
  } finally {
    timer.cancel();
  }
  return engine.journal.read({ ...asked, after });
}

export const eventCalls = {
  "journal.read": call(
    "Read events after a cursor",
    z.tuple([options<ReadOptions>().optional()]),
    ({ engine }, asked) => engine.journal.read(asked),
  ),
  "journal.latest": call(
    "Read the newest events",
    z.tuple([options<LatestOptions>().optional()]),
    ({ engine }, asked) => engine.journal.latest(asked),
  ),
  "journal.wait": call(
    "Read events after a cursor, or wait for the first",
    z.tuple([options<ReadOptions>(), wait]),
    nextEvents,
  ),
  "audit.read": call("Read the audit", z.tuple([options<AuditOptions>().optional()]), ({ engine }, asked) =>
    engine.audit.read(asked),
  ),
  stats: call("Read statistics", z.tuple([options<StatsQuery>().optional()]), ({ engine }, query) =>
    engine.stats(query),
  ),
  advise: call("Suggest timeouts", z.tuple([options<AdviseQuery>().optional()]), ({ engine }, query) =>
    engine.advise(query),
  ),
};
