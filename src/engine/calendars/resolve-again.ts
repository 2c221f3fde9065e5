import { type BusinessTime, calendarOf, resolveBusinessTime } from "../../core/calendar/business-time.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { resolveAgain } from "../../core/timeout/wall-clock.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { resolveCrons } from "../crons/resolve-crons.ts";

type Deps = Pick<EngineContext, "store" | "clock" | "calendars">;

/**
 * Resolves pending timeouts and crons again: all that have a wall clock, or only those of one calendar. Leased timeouts
 * stay; instants that have passed by the new rules are due at once. Repeating it changes nothing.
 */
export async function resolveStored(
  deps: Deps,
  calendar?: string,
): Promise<{ readonly seen: number; readonly moved: number }> {
  const { store, clock, calendars } = deps;
  let [seen, moved] = [0, 0];
  for (let after: string | null = null; ; ) {
    const rows = await store.timeouts.list({ hasWallClock: true }, after, BATCH_LIMIT);
    const wanted =
      calendar === undefined ? rows : rows.filter((row) => calendarOf(row.wallClock) === calendar);
    seen += wanted.length;
    const moves = wanted.flatMap(({ id, dueAt, wallClock }) => {
      const to = instantOf(wallClock as Json, calendars);
      return to === null || to === dueAt ? [] : [{ id, from: dueAt, to: Math.max(0, to) }];
    });
    if (moves.length > 0) moved += await store.timeouts.reschedule(moves, { now: clock.now() });
    if (rows.length < BATCH_LIMIT) break;
    after = rows.at(-1)?.id ?? null;
  }
  moved += await resolveCrons(deps, calendar);
  return { seen, moved };
}

function instantOf(stored: Json, calendars: Deps["calendars"]): Instant | null {
  return calendarOf(stored) === null
    ? resolveAgain(stored)
    : resolveBusinessTime(stored as unknown as BusinessTime, calendars);
}
