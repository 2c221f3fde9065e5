import { isInternalQueue } from "../../core/job/internal-queue.ts";
import { dueAtOf } from "../../core/job/job.ts";
import { FINEST, keyOf, startOf } from "../../core/stats/grains.ts";
import { mostWaiting, type WaitPeak } from "../../core/stats/waits.ts";
import type { Instant } from "../../core/time.ts";
import type { LiveCount } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { statsKind } from "./roll-up.ts";

const MINUTES = statsKind(FINEST);
const MOST_QUEUES = 200;
/** Minutes between two looks while nothing waits and nothing runs. */
const AT_REST = 5;
/** Counting may take this share of the time: where it takes longer, fewer minutes have a figure. */
const COUNTING_SHARE = 0.005;

type Count = () => Promise<readonly LiveCount[]>;

/**
 * Looks once a minute how many jobs wait and for how long, so that plots have a history. One engine of a store does it:
 * the first that comes in a minute.
 */
export class WaitSampler {
  readonly #context: EngineContext;
  readonly #count: Count;
  /** Where in a minute this engine looks. */
  readonly #offset: number;
  #nextAt: Instant = 0;
  #wasBusy = false;

  constructor(context: EngineContext, count: Count) {
    this.#context = context;
    this.#count = count;
    this.#offset = Math.floor(context.random() * 0.75 * FINEST.span);
  }

  /** `isActive`: jobs ran in this minute. A store in which nothing waits and nothing happens gets no row. */
  async round(isActive: boolean): Promise<void> {
    const { clock, system, store } = this.#context;
    const now = clock.now();
    if (now < this.#nextAt) return;
    const start = startOf(now, FINEST.span);
    if (this.#nextAt === 0 && now < start + this.#offset) {
      this.#nextAt = start + this.#offset;
      return;
    }
    const name = keyOf(start, "waits");
    const startedAt = system.monotonic();
    const peaks = (await MINUTES.load(store, name)) === null ? await this.#look(now) : [];
    const cost = system.monotonic() - startedAt;
    const minutes = Math.max(1, Math.ceil(cost / COUNTING_SHARE / FINEST.span));
    this.#nextAt = start + minutes * FINEST.span + this.#offset;
    if (peaks.length === 0) return;
    const isBusy = peaks.some(({ waiting }) => waiting > 0);
    const isTold = isBusy || this.#wasBusy || isActive;
    this.#wasBusy = isBusy;
    if (!isTold) {
      // Nothing waits and nothing runs. Of many processes at rest each would look every minute, because none writes a row.
      this.#nextAt = start + AT_REST * FINEST.span + this.#offset;
      return;
    }
    const unit = {
      when: [MINUTES.guard(name, 0)],
      effects: [MINUTES.put(name, { series: [], waits: peaks }, null)],
    };
    await commitUnits(this.#context, [unit], { relaxed: true });
  }

  async #look(now: Instant): Promise<readonly WaitPeak[]> {
    const { inspect } = this.#context.store;
    const [counts, oldest] = await Promise.all([this.#count(), inspect.oldestReady(MOST_QUEUES)]);
    const since = new Map(oldest.map((job) => [job.queue, Math.max(job.createdAt, dueAtOf(job.rank))]));
    const waiting = new Map<string, number>();
    for (const { queue, state, count } of counts)
      if (state === "available" && !isInternalQueue(queue))
        waiting.set(queue, (waiting.get(queue) ?? 0) + count);
    const peaks: WaitPeak[] = Array.from(waiting, ([queue, count]) => ({
      queue,
      waiting: count,
      oldest: Math.max(0, now - (since.get(queue) ?? now)),
    }));
    const all = {
      queue: null,
      waiting: peaks.reduce((sum, peak) => sum + peak.waiting, 0),
      oldest: Math.max(0, ...peaks.map((peak) => peak.oldest)),
    };
    return mostWaiting([all, ...peaks]);
  }
}
