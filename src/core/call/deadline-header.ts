import { LONGEST_DURATION } from "../time.ts";

/** What is left of the caller's time, in milliseconds. A duration, so that the clocks of two machines need not agree. */
export const DEADLINE_HEADER = "curfew-timeout-ms";

/** The milliseconds of a header; null if there is none, undefined if it is not valid (SEMANTICS 10.6). */
export function readDeadline(header: unknown): number | null | undefined {
  if (header === undefined || header === null) return null;
  if (typeof header !== "string" || !/^\d{1,12}$/.test(header)) return undefined;
  const left = Number(header);
  return left >= 1 && left <= LONGEST_DURATION ? left : undefined;
}
