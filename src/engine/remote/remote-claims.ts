import { fenceSalt, type JobRow } from "../../core/job/job.ts";
import { CLAIM_LEASE } from "../../core/job/policy/deadlines.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { Batcher } from "../runtime/batcher.ts";

/** Claims for remote workers. Fetches that arrive during a claim of the same queue share the next claim. */
export class RemoteClaims {
  readonly #context: EngineContext;
  readonly #id: string;
  /** Only queues that a fetch waits for, because workers may name any number of queues. */
  readonly #queues = new Map<string, Batcher<number, JobRow[]>>();

  constructor(context: EngineContext, id: string) {
    this.#context = context;
    this.#id = id;
  }

  claim(queue: string, count: number): Promise<JobRow[]> {
    let batcher = this.#queues.get(queue);
    if (!batcher) {
      batcher = new Batcher({
        call: (counts) => this.#claim(queue, counts),
        count: fittingOneClaim,
        soon: (start) => this.#context.system.soon(start),
        onIdle: () => this.#queues.delete(queue),
      });
      this.#queues.set(queue, batcher);
    }
    return batcher.add(count);
  }

  async #claim(queue: string, counts: readonly number[]): Promise<JobRow[][]> {
    const { store, clock, random, queues } = this.#context;
    const most = queues.concurrencyOf(queue);
    const turns = queues.turnsOf(queue, clock.elapsed());
    const now = clock.now();
    if (queues.isClosed(now)) return counts.map(() => []);
    const rows = await store.jobs.claim({
      queue,
      limit: counts.reduce((sum, count) => sum + count, 0),
      now,
      lease: CLAIM_LEASE,
      // The start follows at once. A claim as short as the job's visibility timeout could end before its start.
      shortest: CLAIM_LEASE,
      salt: fenceSalt(random),
      worker: this.#id,
      from: 0,
      ...(most !== undefined && { most }),
      ...(turns && { turns }),
    });
    if (turns) queues.noteTurns(queue, turns, rows, clock.elapsed());
    let to = 0;
    return counts.map((count) => {
      to += count;
      return rows.slice(to - count, to);
    });
  }
}

function fittingOneClaim(counts: readonly number[]): number {
  let limit = 0;
  let taken = 0;
  for (const count of counts) {
    if (taken > 0 && limit + count > BATCH_LIMIT) break;
    limit += count;
    taken += 1;
  }
  return taken;
}
