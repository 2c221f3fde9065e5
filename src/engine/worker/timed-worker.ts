import { jittered } from "../../core/pace.ts";
import { formatDuration } from "../../core/time.ts";
import type { Attempt } from "../attempt/attempt.ts";
import type { EngineContext } from "../context.ts";
import type { Moment } from "../runtime/engine-clock.ts";
import { PolicyCache } from "./policy-cache.ts";
import type { Prefetched, QueueConsumer } from "./queue-consumer.ts";
import type { WorkOptions } from "./work-options.ts";
import { Worker } from "./worker.ts";
import { UNKNOWN_TYPE_DELAY } from "./worker-shell.ts";

/** After this many jobs of one queue that do not fit, the worker takes no more of that queue. */
const MOST_SKIPPED = 1_000;

/** A worker whose time is limited: it starts only jobs that fit into it (SEMANTICS 5.6). */
export class TimedWorker extends Worker {
  /** When running handlers are aborted, by `clock.elapsed()`. */
  readonly #endsAt: number;
  readonly #policyCache: PolicyCache;
  /** The longest run of each type in this worker. */
  readonly #longest = new Map<string, number>();
  readonly #skipped = new Map<string, number>();
  readonly #warned = new Set<string>();
  readonly #onDry: (() => void)[] = [];
  #entered = 0;

  constructor(
    context: EngineContext,
    options: WorkOptions,
    time: number,
    onClosed: (worker: Worker) => void,
  ) {
    super(context, options, onClosed);
    this.#endsAt = context.clock.elapsed() + time;
    this.#policyCache = new PolicyCache(context);
  }

  /** Jobs that were handed to `enter`, whether they fit or not. */
  get entered(): number {
    return this.#entered;
  }

  /** How often a job was given back because it did not fit. */
  get skipped(): number {
    let sum = 0;
    for (const count of this.#skipped.values()) sum += count;
    return sum;
  }

  override enter(consumer: QueueConsumer, prefetched: Prefetched, moment: Moment): void {
    this.#entered += 1;
    const needed = this.#needed(prefetched);
    const left = this.#endsAt - moment.elapsed;
    if (needed <= left) {
      super.enter(consumer, prefetched, moment);
      return;
    }
    this.#warn(prefetched.row.type, needed, left);
    this.release(prefetched.row, Math.round(jittered(UNKNOWN_TYPE_DELAY, this.parts.random)));
    const count = (this.#skipped.get(consumer.queue) ?? 0) + 1;
    this.#skipped.set(consumer.queue, count);
    if (count === MOST_SKIPPED) this.#leave(consumer);
    this.free(consumer);
  }

  /** Milliseconds that the job may take: its named limit, else the longest run of its type that was seen here. */
  #needed({ row }: Prefetched): number {
    const processor = this.processors.get(row.type);
    if (!processor) return 0;
    const { attempt, sources } = row.policy ?? this.#policyCache.of(processor, row);
    const isNamed = attempt !== null && sources.attempt !== "built-in";
    const needed = isNamed ? attempt : (this.#longest.get(row.type) ?? 0);
    return row.totalAt === null ? needed : Math.min(needed, row.totalAt - this.parts.clock.now());
  }

  #warn(type: string, needed: number, left: number): void {
    if (this.#warned.has(type)) return;
    this.#warned.add(type);
    const fields = {
      type,
      needed: formatDuration(Math.ceil(needed)),
      left: formatDuration(Math.floor(left)),
    };
    this.parts.logger.info(fields, "a job does not fit into the time that is left; it was released");
  }

  #leave(consumer: QueueConsumer): void {
    void consumer.loop.stop();
    this.giveBackPrefetched(consumer);
  }

  override freed(attempt: Attempt): void {
    const { type } = attempt.row;
    const elapsed = this.clock.elapsed() - attempt.enteredAt;
    this.#longest.set(type, Math.max(elapsed, this.#longest.get(type) ?? 0));
    super.freed(attempt);
  }

  protected override free(consumer: QueueConsumer): void {
    super.free(consumer);
    this.#look();
  }

  protected override pumpAll(): void {
    super.pumpAll();
    this.#look();
  }

  override dried(): void {
    this.#look();
  }

  /** Resolves when no job runs, all verdicts are written, and a claim of each queue found no job. */
  dry(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDry.push(resolve);
      this.#look();
    });
  }

  /** Claims once more from every queue, even if the last claim found nothing. */
  lookAgain(): void {
    for (const consumer of this.consumers.values()) if (!this.#isLeft(consumer)) consumer.notify();
  }

  #isLeft({ queue }: QueueConsumer): boolean {
    return (this.#skipped.get(queue) ?? 0) >= MOST_SKIPPED;
  }

  #look(): void {
    if (this.#onDry.length === 0 || this.writer.backlog > 0) return;
    for (const consumer of this.consumers.values())
      if (consumer.isBusy || !(consumer.isDry || this.#isLeft(consumer))) return;
    for (const resolve of this.#onDry.splice(0)) resolve();
  }
}
