import type { NewJob } from "../../core/job/envelope.ts";
import { type JobRow, nextFence } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { ClaimRequest } from "../../ports/store.ts";

/*
 * Rows are never changed, only replaced: what a caller was given stays as it was, and the store hands out its own
 * rows without copying them. The long literals keep all rows in one hidden class, which is what makes them cheap.
 */

export function newRow(job: NewJob): JobRow {
  const { image } = job;
  return {
    id: job.id,
    queue: job.queue,
    type: job.type,
    priority: job.priority,
    fence: job.fence ?? 0,
    rev: 0,
    createdAt: job.createdAt,
    claimedAt: null,
    worker: null,
    needs: job.needs ?? 0,
    workflow: job.workflow ?? null,
    gate: job.gate ?? null,
    payload: job.payload,
    options: job.options,
    policy: null,
    errors: null,
    progress: null,
    checkpoint: null,
    result: null,
    state: image.state,
    wake: image.wake,
    wakeAt: image.wakeAt,
    rank: image.rank,
    attempt: image.attempt,
    returns: image.returns,
    strikes: image.strikes,
    waitAt: image.waitAt,
    totalAt: image.totalAt,
    startedAt: image.startedAt,
    softAt: image.softAt,
    hardAt: image.hardAt,
    stallAt: image.stallAt,
    heartbeat: image.heartbeat,
    finishedAt: image.finishedAt,
    pruneAt: image.pruneAt,
    deadLetter: image.deadLetter,
  };
}

/** What `decide` makes of a claim, without a decision per job: the conformance kit holds the two equal. */
export function claimedRow(row: JobRow, { now, lease, salt, worker }: ClaimRequest): JobRow {
  const stallAt = now + Math.min(row.heartbeat ?? lease, lease);
  return {
    ...row,
    state: "active",
    wake: "judge",
    wakeAt: earlier(stallAt, earlier(row.waitAt, row.totalAt)),
    stallAt,
    fence: nextFence(row.fence, salt),
    rev: row.rev + 1,
    claimedAt: now,
    worker,
  };
}

/** A waiting job that may start: its delay or backoff is over, or its gate let it through. */
export function availableRow(row: JobRow): JobRow {
  return {
    ...row,
    state: "available",
    wake: "judge",
    wakeAt: earlier(row.waitAt, row.totalAt),
    rev: row.rev + 1,
  };
}

/**
 * One need less. The last one wakes the job to be judged, and that is a revision: an outsider who read the row before
 * would otherwise write an older `wakeAt` over it, and nobody would ever look at the job again.
 */
export function countedDownRow(row: JobRow, now: Instant): JobRow {
  const needs = row.needs - 1;
  return needs > 0 ? { ...row, needs } : { ...row, needs, wake: "judge", wakeAt: now, rev: row.rev + 1 };
}
