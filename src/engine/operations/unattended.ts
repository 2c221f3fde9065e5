import type { UnattendedQueue } from "../../core/doctor/doctor-facts.ts";
import { nearestName } from "../../core/nearest-name.ts";
import type { Instant } from "../../core/time.ts";
import { isSilent, type WorkerReport } from "../../core/worker/worker-report.ts";
import type { Store } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { listWorkers } from "./worker-list.ts";

const MOST_QUEUES = 1_000;
const MOST_LISTED = 100;
const MOST_COUNTED = 1_000;
const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/** Queues that live workers take; null if a worker does not list its queues, or if there are too many workers. */
async function attendedQueues(store: Store, now: Instant): Promise<ReadonlySet<string> | null> {
  const { workers, hasMore } = await listWorkers(store);
  const live = workers.filter((worker) => !isSilent(worker, now));
  if (hasMore || live.some(({ queues }: WorkerReport) => queues === null)) return null;
  return new Set(live.flatMap(({ queues }) => queues ?? []));
}

/** Queues with available jobs that no live worker takes, at most 100. The number of jobs does not matter. */
export async function unattendedQueues(store: Store, now: Instant): Promise<UnattendedQueue[]> {
  const [attended, names] = await Promise.all([
    attendedQueues(store, now),
    store.inspect.readyQueues(null, MOST_QUEUES),
  ]);
  if (attended === null) return [];
  const unattended = names.filter((name) => !attended.has(name)).slice(0, MOST_LISTED);
  const end = { rank: Number.MAX_SAFE_INTEGER, id: FIRST_ID };
  return Promise.all(
    unattended.map(async (queue) => {
      const counted = await store.inspect.ahead({ queue }, end, MOST_COUNTED + 1);
      return {
        queue,
        waiting: Math.min(counted, MOST_COUNTED),
        hasMore: counted > MOST_COUNTED,
        didYouMean: nearestName(queue, attended) ?? null,
      };
    }),
  );
}

/** A process that enqueues constantly reads the workers this often. */
const LOOK_EVERY = 15_000;

/**
 * Counts enqueues into queues that no live worker takes. The hot path pays nothing: enqueues are counted anyway, and
 * the workers are read only after an enqueue, every 15 s.
 */
export class UnattendedCounter {
  readonly #context: Pick<EngineContext, "store" | "clock" | "counters" | "logger">;
  readonly #looked = new Map<string, number>();
  readonly #warned = new Set<string>();
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(context: Pick<EngineContext, "store" | "clock" | "counters" | "logger">) {
    this.#context = context;
  }

  async round(): Promise<void> {
    const { store, clock, counters } = this.#context;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextAt) return;
    const enqueued = counters.enqueuedByQueue();
    const grown = [...enqueued].filter(([queue, count]) => count > (this.#looked.get(queue) ?? 0));
    if (grown.length === 0) return;
    this.#nextAt = elapsed + LOOK_EVERY;
    const attended = await attendedQueues(store, clock.now());
    for (const [queue, count] of grown) {
      const more = count - (this.#looked.get(queue) ?? 0);
      this.#looked.set(queue, count);
      if (attended && !attended.has(queue)) this.#count(queue, more, attended);
    }
  }

  #count(queue: string, count: number, attended: ReadonlySet<string>): void {
    this.#context.counters.unattended(queue, count);
    if (this.#warned.has(queue)) return;
    this.#warned.add(queue);
    const didYouMean = nearestName(queue, attended);
    this.#context.logger.warn(
      { queue, count, ...(didYouMean !== undefined && { didYouMean }) },
      "jobs were enqueued into a queue that no live worker takes; start a worker for it, or correct its name",
    );
  }
}
