import type { Json } from "../../core/schema.ts";
import { resolveAgain } from "../../core/timeout/wall-clock.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind } from "../commit/records.ts";
import type { EngineContext } from "../context.ts";
import { resolveCrons } from "../crons/cron-zones.ts";

const ZONES = recordKind<{ readonly version?: string }>("zones");
const NAME = "version";
const PAGE = BATCH_LIMIT;

/**
 * Resolves pending wall-clock timeouts and crons again if this process has newer zone data than the store's (SEMANTICS
 * 7.8). Leased timeouts stay; instants that have passed by the new rules are due at once. Versions such as "2026a"
 * sort, so an older process changes nothing. Returns how many moved.
 */
export async function resolveZones(
  { store, clock, logger }: Pick<EngineContext, "store" | "clock" | "logger">,
  zoneData: string | undefined,
): Promise<number> {
  if (zoneData === undefined || zoneData === "") return 0;
  const before = (await ZONES.load(store, NAME))?.body.version;
  if (before !== undefined && before >= zoneData) return 0;
  let moved = 0;
  let seen = 0;
  // A store without a version may hold older timeouts; finding none costs one query.
  for (let after: string | null = null; ; ) {
    const rows = await store.timeouts.list({ hasWallClock: true }, after, PAGE);
    seen += rows.length;
    const moves = rows.flatMap(({ id, dueAt, wallClock }) => {
      const to = resolveAgain(wallClock as Json);
      return to === null || to === dueAt ? [] : [{ id, from: dueAt, to: Math.max(0, to) }];
    });
    if (moves.length > 0) moved += await store.timeouts.reschedule(moves, { now: clock.now() });
    if (rows.length < PAGE) break;
    after = rows.at(-1)?.id ?? null;
  }
  moved += await resolveCrons({ store, clock });
  await commitUnits({ store, clock }, [{ effects: [ZONES.put(NAME, { version: zoneData }, null)] }]);
  if (seen + moved > 0)
    logger.info(
      { from: before, to: zoneData, seen, moved },
      "zone data changed: wall-clock timeouts and crons were resolved anew",
    );
  return moved;
}
