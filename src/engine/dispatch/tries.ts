import type { TimeoutRow } from "../../core/timeout/timeout.ts";

/** How often the dispatcher tries to deliver a timeout before it is dead (SEMANTICS 6). */
const MOST_TRIES = 10;

/** Whether a timeout whose delivery fails now is dead afterwards. */
export function isLastTry({ tries }: Pick<TimeoutRow, "tries">): boolean {
  return tries + 1 >= MOST_TRIES;
}
