import { type Fence, type JobDocuments, type JobImage, type JobRow, priorityOf } from "../job.ts";

/** What to write over a row. Documents that are not named stay; null clears one. */
export interface RowWrite {
  readonly image?: JobImage;
  readonly documents?: JobDocuments;
  readonly nextFence?: Fence;
}

/**
 * A row after a write. It names every field: this runs several times per job, and spreading rows of 37 fields costs
 * more than the rest of a small job.
 */
export function writtenRow(row: JobRow, write: RowWrite, rev: number): JobRow {
  const image = write.image ?? row;
  const documents: JobDocuments = write.documents ?? row;
  return {
    id: row.id,
    queue: row.queue,
    type: row.type,
    priority: image === row ? row.priority : priorityOf(image.rank),
    fence: write.nextFence ?? row.fence,
    rev,
    createdAt: row.createdAt,
    claimedAt: row.claimedAt,
    worker: row.worker,
    needs: row.needs,
    workflow: row.workflow,
    limitKey: row.limitKey,
    fairKey: row.fairKey,
    payload: row.payload,
    options: documents.options === undefined ? row.options : documents.options,
    policy: documents.policy === undefined ? row.policy : documents.policy,
    errors: documents.errors === undefined ? row.errors : documents.errors,
    progress: documents.progress === undefined ? row.progress : documents.progress,
    checkpoint: documents.checkpoint === undefined ? row.checkpoint : documents.checkpoint,
    result: documents.result === undefined ? row.result : documents.result,
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
