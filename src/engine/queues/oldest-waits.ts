import { isInternalQueue } from "../../core/job/internal-queue.ts";
import { dueAtOf, type JobId } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";

export interface OldestWait {
  readonly queue: string;
  /** The available job that became due first. */
  readonly job: JobId;
  /** When it became due. */
  readonly since: Instant;
}

export interface OldestWaits {
  readonly queues: readonly OldestWait[];
  /** False if more queues have available jobs. */
  readonly isComplete: boolean;
}

const MOST_QUEUES = 50;

/** The oldest available job of each queue, at most 50 queues. */
export async function oldestWaits({ inspect }: Pick<Store, "inspect">): Promise<OldestWaits> {
  const jobs = await inspect.oldestReady(MOST_QUEUES + 1);
  return {
    queues: jobs
      .slice(0, MOST_QUEUES)
      .filter(({ queue }) => !isInternalQueue(queue))
      .map(({ queue, id, rank, createdAt }) => ({
        queue,
        job: id,
        since: Math.max(createdAt, dueAtOf(rank)),
      })),
    isComplete: jobs.length <= MOST_QUEUES,
  };
}
