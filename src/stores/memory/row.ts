import { type JobRow, nextFence } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { ClaimRequest } from "../../ports/store.ts";

/*
 * Rows are never changed, only replaced: what a caller was given stays as it was, and the store hands out its own
 * rows without copying them. The long literals keep all rows in one hidden class, which is what makes them cheap.
 */

/** What `decide` makes of a claim, without a decision per job: the conformance kit holds the two equal. */
export function claimedRow(row: JobRow, { now, lease, salt, worker }: ClaimRequest): JobRow {
  const stallAt = now + Math.min(row.heartbeat ?? lease, lease);
  return {
    ...row,
    state: "active",
    wake: "decide",
    wakeAt: earlier(stallAt, earlier(row.waitAt, row.totalAt)),
    stallAt,
    fence: nextFence(row.fence, salt),
    rev: row.rev + 1,
    claimedAt: now,
    worker,
  };
}

/** A waiting job that may start: its delay or backoff is over, or its limit let it through. */
export function availableRow(row: JobRow): JobRow {
  return {
    ...row,
    state: "available",
    wake: "decide",
    wakeAt: earlier(row.waitAt, row.totalAt),
    rev: row.rev + 1,
  };
}

/**
 * One need less. The last one, or the last but one of a job with a limit, wakes the job to be judged, and that is a revision: an outsider who read the row before
 * would otherwise write an older `wakeAt` over it, and nobody would ever look at the job again.
 */
export function countedDownRow(row: JobRow, now: Instant): JobRow {
  const needs = row.needs - 1;
  return needs > (row.limitKey === null ? 0 : 1)
    ? { ...row, needs }
    : { ...row, needs, wake: "decide", wakeAt: now, rev: row.rev + 1 };
}
