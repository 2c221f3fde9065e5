import { CurfewError } from "../../core/errors.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobId } from "../../core/job/job.ts";

/**
 * The store did not confirm an enqueue, so the jobs may be stored or not. It is safe to enqueue them again with these
 * ids: a stored job is returned as a duplicate.
 */
export class EnqueueFailedError extends CurfewError {
  override readonly name = "EnqueueFailedError";
  readonly ids: readonly JobId[];

  constructor(jobs: readonly NewJob[], cause: unknown) {
    const ids = jobs.map(({ id }) => id);
    const named = ids.length === 1 ? `job ${ids[0]}` : `${ids.length} jobs from ${ids[0]} on`;
    super("store_failed", `enqueue: the store did not confirm ${named}; enqueue again with the same id`, {
      cause,
    });
    this.ids = ids;
  }
}
