import { CurfewError, ERRORS } from "../../core/errors.ts";
import type { JobId } from "../../core/job/job.ts";

/** How long a producer whose job was refused had better wait: about as long as it takes a worker to make room. */
const RETRY_AFTER = 1_000;

/** A bounded queue had no room for some of the jobs. Those that are not named were stored. */
export class QueueFullError extends CurfewError {
  override readonly name = "QueueFullError";
  readonly queue: string;
  /** How many jobs may wait in the queue, and do. */
  readonly most: number;
  /** The jobs that were refused. */
  readonly ids: readonly JobId[];
  /** How many milliseconds to wait before trying again. */
  readonly retryAfter: number = RETRY_AFTER;

  constructor(queue: string, most: number, ids: readonly JobId[]) {
    const which =
      ids.length === 1 ? "" : ` (${ids.length} of these jobs were refused, the others are stored)`;
    super(
      "queue_full",
      `queue: "${queue}" is full. ${ERRORS.queue_full.says}: ${most}${which}; enqueue again in ${RETRY_AFTER} ms, or raise depth.most of the queue`,
      { field: "queue" },
    );
    this.queue = queue;
    this.most = most;
    this.ids = ids;
  }
}
