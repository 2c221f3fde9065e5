import type { JobRow } from "../job.ts";
import type { NewJob } from "./envelope.ts";

/**
 * The row of a job that was just stored, without reading it back. The long literal gives all rows one hidden class,
 * which keeps them cheap.
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
    limitKey: job.limitKey ?? null,
    fairKey: job.fairKey ?? null,
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
    expiredClaims: image.expiredClaims,
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
