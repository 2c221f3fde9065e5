import { CLAIM_LEASE } from "../../core/job/deadlines.ts";
import { fenceSalt, type JobRow } from "../../core/job/job.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";

interface Want {
  readonly count: number;
  readonly resolve: (rows: JobRow[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Fetches of many remote workers that come while a claim of the same queue is under way share the next one. */
export class Claims {
  readonly #parts: EngineContext;
  readonly #id: string;
  readonly #queues = new Map<string, Want[]>();

  constructor(parts: EngineContext, id: string) {
    this.#parts = parts;
    this.#id = id;
  }

  claim(queue: string, count: number): Promise<JobRow[]> {
    return new Promise((resolve, reject) => {
      const want = { count, resolve, reject };
      const waiting = this.#queues.get(queue);
      if (waiting) waiting.push(want);
      else {
        this.#queues.set(queue, [want]);
        void this.#drain(queue);
      }
    });
  }

  async #drain(queue: string): Promise<void> {
    for (;;) {
      // One microtask, so that fetches of the same turn share even the first claim.
      await undefined;
      const waiting = this.#queues.get(queue) as Want[];
      if (waiting.length === 0) break;
      let limit = 0;
      let taken = 0;
      for (const { count } of waiting) {
        if (taken > 0 && limit + count > BATCH_LIMIT) break;
        limit += count;
        taken += 1;
      }
      await this.#serve(queue, waiting.splice(0, taken), limit);
    }
    this.#queues.delete(queue);
  }

  async #serve(queue: string, wants: readonly Want[], limit: number): Promise<void> {
    const { store, clock, random, queues } = this.#parts;
    const most = queues.concurrencyOf(queue);
    const now = clock.now();
    if (queues.isClosed(now)) {
      for (const { resolve } of wants) resolve([]);
      return;
    }
    try {
      const rows = await store.jobs.claim({
        queue,
        limit,
        now,
        lease: CLAIM_LEASE,
        salt: fenceSalt(random),
        worker: this.#id,
        from: 0,
        ...(most !== undefined && { most }),
      });
      let from = 0;
      for (const { count, resolve } of wants) {
        resolve(rows.slice(from, from + count));
        from += count;
      }
    } catch (error) {
      for (const { reject } of wants) reject(error);
    }
  }
}
