import type { JobRow, Policy } from "./job.ts";

/** What to write so that an attempt ends although its process died. */
export const REMEDY = "name timeouts.heartbeat, or attempt or total with a grace that is not unbounded";

/**
 * Whether nothing ends an attempt whose process dies: no sign of life is awaited of it, and it has no `hardAt`. With
 * unbounded grace it never has one, not even at the end of `total` (SEMANTICS 1.5).
 */
export function isEndless(
  { heartbeat, attempt, grace }: Pick<Policy, "heartbeat" | "attempt" | "grace">,
  total: number | null,
): boolean {
  return heartbeat === null && (grace === null || (attempt === null && total === null));
}

/** Whether a job runs, and nobody will ever look at it again but its own worker. */
export function runsEndlessly({ state, startedAt, wakeAt }: JobRow): boolean {
  return state === "active" && startedAt !== null && wakeAt === null;
}

/** Says what an endless attempt does to the other jobs of its limit; undefined where the limit has no slots. */
export function limitHoldWarning(row: Pick<JobRow, "limitKey" | "options">): string | undefined {
  const { concurrency, strict } = row.options?.limit ?? {};
  if (concurrency === undefined) return undefined;
  const key = row.limitKey === null ? "its limit" : `the limit "${row.limitKey}"`;
  const rest =
    concurrency === 1
      ? `nothing else of that key runs meanwhile${strict ? ", retries and successors included" : ""}`
      : `${concurrency} of them stop all of that key`;
  return `it holds a place of ${key} for as long as it is active, and ${rest}: ${REMEDY}`;
}

/** Says what an endless attempt does to the other jobs of its queue; undefined where the queue has no concurrency. */
export function queueHoldWarning(queue: string, concurrency: number | undefined): string | undefined {
  if (concurrency === undefined) return undefined;
  const rest =
    concurrency === 1
      ? "no other job of that queue runs meanwhile"
      : `${concurrency} of them stop that queue`;
  return `it holds a slot of the queue "${queue}" for as long as it is active, and ${rest}: ${REMEDY}`;
}
