import type { JobRow, Policy } from "../job.ts";

/** How to make an attempt end even if its process dies. */
export const REMEDY = "name timeouts.heartbeat, or attempt or total with a grace that is not unbounded";

/**
 * Whether nothing ends an attempt whose process dies: no beats are expected of it, and it has no `hardAt`. With
 * unbounded grace there is never a `hardAt`, not even at the end of `total` (SEMANTICS 1.5).
 */
export function isEndless(
  { heartbeat, attempt, grace }: Pick<Policy, "heartbeat" | "attempt" | "grace">,
  total: number | null,
): boolean {
  return heartbeat === null && (grace === null || (attempt === null && total === null));
}

/** Whether a job runs, and only its worker will ever end it. */
export function runsEndlessly({ state, startedAt, wakeAt }: JobRow): boolean {
  return state === "active" && startedAt !== null && wakeAt === null;
}

/** Warns what an endless attempt does to the other jobs of its limit; undefined if the limit has no concurrency. */
export function limitHoldWarning(row: Pick<JobRow, "limitKey" | "options">): string | undefined {
  const { concurrency, strict } = row.options?.limit ?? {};
  if (concurrency === undefined) return undefined;
  const key = row.limitKey === null ? "its limit" : `the limit "${row.limitKey}"`;
  const rest =
    concurrency === 1
      ? `no other job of that key runs meanwhile${strict ? ", retries and successors included" : ""}`
      : `${concurrency} such jobs stop all jobs of that key`;
  return `it holds a slot of ${key} for as long as it is active, and ${rest}: ${REMEDY}`;
}

/** Warns what an endless attempt does to the other jobs of its queue; undefined if the queue has no concurrency. */
export function queueHoldWarning(queue: string, concurrency: number | undefined): string | undefined {
  if (concurrency === undefined) return undefined;
  const rest =
    concurrency === 1
      ? "no other job of that queue runs meanwhile"
      : `${concurrency} such jobs stop that queue`;
  return `it holds a slot of the queue "${queue}" for as long as it is active, and ${rest}: ${REMEDY}`;
}
