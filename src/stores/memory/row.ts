import { type JobRow, nextFence } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { ClaimRequest } from "../../ports/store.ts";

/*
 * Rows are replaced, never changed. So a row that a caller has stays as it was, and the store returns its rows
 * without copying. The long literals give all rows one hidden class, which keeps them cheap.
 */

/** What `decide` makes of a claim, without a decision per job. The conformance kit checks that both are equal. */
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

/** A waiting job that may start: its delay or backoff is over, or its limit admitted it. */
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
 * Decrements `needs`. The last need, or with a limit key the last but one, wakes the job for a decision and increases
 * its revision. Otherwise a writer that read the row before would overwrite `wakeAt` with an older one, and the job
 * would never be looked at again.
 */
export function countedDownRow(row: JobRow, now: Instant): JobRow {
  const needs = row.needs - 1;
  return needs > (row.limitKey === null ? 0 : 1)
    ? { ...row, needs }
    : { ...row, needs, wake: "decide", wakeAt: now, rev: row.rev + 1 };
}
