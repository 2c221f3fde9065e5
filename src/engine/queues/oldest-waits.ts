import { dueAtOf, type JobId } from "../../core/job/job.ts";
import { BOOKKEEPING_QUEUE } from "../../core/job/step-rules.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";

export interface OldestWait {
  readonly queue: string;
  /** The available job that was created first; null if the jobs that were read have none. */
  readonly job: JobId | null;
  /** When it became due. */
  readonly since: Instant | null;
}

export interface OldestWaits {
  readonly queues: readonly OldestWait[];
  /** False if more queues have available jobs. */
  readonly isComplete: boolean;
}

const MOST_QUEUES = 50;
/** Store steps for one queue: its jobs may come after many jobs of other queues. */
const MOST_STEPS = 5;

/** The oldest available job of each queue, at most 50 queues, among the oldest 10,000 live jobs. */
export async function oldestWaits({ inspect }: Pick<Store, "inspect">): Promise<OldestWaits> {
  const names = await inspect.readyQueues(null, MOST_QUEUES + 1);
  const queues: OldestWait[] = [];
  for (const queue of names.slice(0, MOST_QUEUES))
    if (queue !== BOOKKEEPING_QUEUE) queues.push(await oldestOf(inspect, queue));
  return { queues, isComplete: names.length <= MOST_QUEUES };
}

async function oldestOf(inspect: Store["inspect"], queue: string): Promise<OldestWait> {
  const filter = { queue, state: "available" } as const;
  let after: string | null = null;
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const page: Awaited<ReturnType<typeof inspect.page>> = await inspect.page({ filter, after }, 1);
    const [row] = page.jobs;
    if (row) return { queue, job: row.id, since: Math.max(row.createdAt, dueAtOf(row.rank)) };
    if (page.cursor === null) break;
    after = page.cursor;
  }
  return { queue, job: null, since: null };
}
