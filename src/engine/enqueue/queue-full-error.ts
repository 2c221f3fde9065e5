import { CurfewError, ERRORS } from "../../core/errors.ts";
import type { JobId } from "../../core/job/job.ts";

/** How long a producer should wait before it tries again: about the time a worker needs to free room. */
const RETRY_AFTER = 1_000;

/** A bounded queue had no room for the jobs in `ids`. All other jobs of the call are stored. */
export class QueueFullError extends CurfewError {
  override readonly name = "QueueFullError";
  readonly queue: string;
  /** How many jobs may wait in the queue. */
  readonly most: number;
  readonly ids: readonly JobId[];
  /** Milliseconds to wait before the next try. */
  readonly retryAfter: number = RETRY_AFTER;

  constructor(queue: string, most: number, ids: readonly JobId[]) {
    const refused =
      ids.length === 1 ? "" : ` (${ids.length} of these jobs were refused, the others are stored)`;
    super(
      "queue_full",
      `queue: "${queue}" is full. ${ERRORS.queue_full.says}: ${most}${refused}; enqueue again in ${RETRY_AFTER} ms, or raise depth.most of the queue`,
      { field: "queue" },
    );
    this.queue = queue;
    this.most = most;
    this.ids = ids;
  }
}
