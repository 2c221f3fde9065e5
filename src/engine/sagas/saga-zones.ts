import { resolveStored } from "../calendars/resolve-again.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";

const ZONES = recordKind<{ readonly version?: string }>("zones");
const NAME = "version";

/**
 * Resolves pending wall-clock timeouts and crons again if this process has newer zone data than the store's (SEMANTICS
 * 7.8). Versions such as "2026a" sort, so an older process changes nothing. Returns how many moved.
 */
export async function resolveZones(
  { store, clock, calendars, logger }: Pick<EngineContext, "store" | "clock" | "calendars" | "logger">,
  zoneData: string | undefined,
): Promise<number> {
  if (zoneData === undefined || zoneData === "") return 0;
  const before = (await ZONES.load(store, NAME))?.body.version;
  if (before !== undefined && before >= zoneData) return 0;
  // A store without a version may hold older timeouts; finding none costs one query.
  const { seen, moved } = await resolveStored({ store, clock, calendars });
  await commitUnits({ store, clock }, [{ effects: [ZONES.put(NAME, { version: zoneData }, null)] }]);
  if (seen + moved > 0)
    logger.info(
      { from: before, to: zoneData, seen, moved },
      "zone data changed: wall-clock timeouts and crons were resolved anew",
    );
  return moved;
}
