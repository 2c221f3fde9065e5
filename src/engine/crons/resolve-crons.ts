import { type CronBody, resolvedCron } from "../../core/cron/cron.ts";
import { CurfewError } from "../../core/errors.ts";
import { BATCH_LIMIT, type Unit } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { StoredRecord } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";
import { CRONS, putCron } from "./cron-jobs.ts";

type Deps = Pick<EngineContext, "store" | "clock" | "calendars">;

/** All crons, page by page. */
async function* cronPages({ store }: Pick<Deps, "store">): AsyncGenerator<StoredRecord<CronBody>[]> {
  for (let after: string | null = null; ; ) {
    const crons: StoredRecord<CronBody>[] = await CRONS.list(store, after, BATCH_LIMIT);
    yield crons;
    if (crons.length < BATCH_LIMIT) return;
    after = crons.at(-1)?.name ?? null;
  }
}

/**
 * Computes the next instants of crons anew, by newer zone data or a changed calendar. Returns the number of crons that
 * moved. No changeRecord: many crons share a call. A cron that changed since it was read is skipped: its writer used its
 * own zone data.
 */
export async function resolveCrons(deps: Deps, calendar?: string): Promise<number> {
  const { clock, calendars } = deps;
  let moved = 0;
  for await (const crons of cronPages(deps)) {
    const now = clock.now();
    const units = crons.flatMap(({ name, version, body }): Unit[] => {
      if (calendar !== undefined && body.rule.schedule.calendar !== calendar) return [];
      const rezoned = rezonedUnlessUnknown(body, now, calendars);
      return rezoned ? [{ when: [CRONS.guard(name, version)], effects: [putCron(name, rezoned)] }] : [];
    });
    moved += (await commitUnits(deps, units)).filter(({ ok }) => ok).length;
  }
  return moved;
}

/** A cron whose calendar is gone keeps its instant, as a cron in a zone that is gone does. */
function rezonedUnlessUnknown(body: CronBody, now: number, calendars: Deps["calendars"]): CronBody | null {
  try {
    return resolvedCron(body, now, calendars);
  } catch (error) {
    if (error instanceof CurfewError && error.code === "unknown_calendar") return null;
    throw error;
  }
}

/** The names of the crons that use a calendar. */
export async function cronsOfCalendar(deps: Pick<Deps, "store">, calendar: string): Promise<string[]> {
  const names: string[] = [];
  for await (const crons of cronPages(deps))
    for (const { name, body } of crons) if (body.rule.schedule.calendar === calendar) names.push(name);
  return names;
}
