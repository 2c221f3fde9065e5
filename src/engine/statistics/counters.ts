import type { LifecycleEvent } from "../../core/job/decide/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import { type CountedKind, OTHER } from "../../core/stats/series.ts";
import type { Instant } from "../../core/time.ts";
import { Histogram, type HistogramSnapshot } from "./lateness-histogram.ts";
import { Minutes } from "./minute-counts.ts";
import { SagaCounters, type SagaCounts } from "./saga-counters.ts";
import { Tallies, type Tally } from "./tallies.ts";

/** Upper bounds of the lateness histogram in milliseconds; the last bucket takes the rest. */
export const LATENESS_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 60_000] as const;

export interface TimeoutCount {
  readonly kind: CountedKind;
  readonly mode: string;
  readonly type: string;
  readonly queue: string;
  readonly count: number;
}

export interface UnattendedCount {
  readonly queue: string;
  readonly count: number;
}

export interface CounterSnapshot {
  readonly enqueued: number;
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly retrying: number;
  readonly discarded: number;
  readonly cancelled: number;
  /** Successes after the soft signal: their deadline was missed, and they still count. */
  readonly late: number;
  /** In-process handlers that ran past their hard deadline and were fenced off. */
  readonly stuck: number;
  /** Writes that were refused because another fence holds. */
  readonly lost: number;
  /** Writes whose outcome is unknown, because the row is gone. */
  readonly unknown: number;
  /** Results, progress, checkpoints and log lines that a handler reported after its verdict. They do not count. */
  readonly ignored: number;
  readonly released: number;
  readonly timeouts: readonly TimeoutCount[];
  readonly sagas: SagaCounts;
  /** Delay of deadlines: counts per bound of LATENESS_BOUNDS, and the sum in milliseconds. */
  readonly lateness: HistogramSnapshot;
  /** Enqueues into queues that no live worker takes. */
  readonly unattended: readonly UnattendedCount[];
  /** Per type and queue. Beyond the first 500 pairs, everything is counted under "other". */
  readonly tallies: readonly Tally[];
}

type SimpleCounter = Exclude<
  keyof CounterSnapshot,
  "timeouts" | "lateness" | "tallies" | "sagas" | "unattended"
>;

/** Producers choose types and queues, so the number of counted pairs is bounded. */
const MOST_PAIRS = 500;
const MOST_TIMEOUT_COUNTS = 2_000;

const BY_EVENT: Partial<Record<LifecycleEvent["name"], SimpleCounter>> = {
  // Steps of workflows, when they become ready. Other new jobs are counted by enqueued().
  "job.enqueued": "enqueued",
  "job.scheduled": "enqueued",
  "job.started": "started",
  "job.completed": "completed",
  "job.failed": "failed",
  "job.retrying": "retrying",
  "job.discarded": "discarded",
  "job.cancelled": "cancelled",
  "job.released": "released",
};

const TIMEOUT_EVENTS: ReadonlySet<string> = new Set([
  "job.timeout",
  "job.total_timeout",
  "job.stalled",
  "job.ttl_expired",
]);

function countedKind(event: LifecycleEvent): CountedKind | undefined {
  if (event.name === "job.visibility_timeout") return "visibility";
  return TIMEOUT_EVENTS.has(event.name) ? event.error?.kind : undefined;
}

/** Counts of this process since it started, for metrics. Nothing is decided by them. */
export class Counters {
  readonly sagas = new SagaCounters();
  readonly #simple: Record<SimpleCounter, number> = {
    enqueued: 0,
    started: 0,
    completed: 0,
    failed: 0,
    retrying: 0,
    discarded: 0,
    cancelled: 0,
    late: 0,
    stuck: 0,
    lost: 0,
    unknown: 0,
    ignored: 0,
    released: 0,
  };
  readonly #timeouts = new Map<
    string,
    { kind: CountedKind; mode: string; type: string; queue: string; count: number }
  >();
  /** By queue; bounded because its keys come from the tallies. */
  readonly #unattended = new Map<string, number>();
  readonly #lateness = new Histogram(LATENESS_BOUNDS);
  readonly #tallies = new Tallies(MOST_PAIRS);
  /** The same counts by minute, until they are stored. */
  readonly minutes = new Minutes(this.#tallies);

  add(name: SimpleCounter, count = 1): void {
    this.#simple[name] += count;
  }

  enqueued(type: string, queue: string): void {
    this.#simple.enqueued += 1;
    this.#tallies.of(type, queue).counts.enqueued += 1;
  }

  unattended(queue: string, count: number): void {
    this.#unattended.set(queue, (this.#unattended.get(queue) ?? 0) + count);
  }

  enqueuedByQueue(): Map<string, number> {
    const byQueue = new Map<string, number>();
    for (const { queue, counts } of this.#tallies.all())
      byQueue.set(queue, (byQueue.get(queue) ?? 0) + counts.enqueued);
    byQueue.delete(OTHER);
    return byQueue;
  }

  /** Counts the events of a decision that was committed at `at`. `job` is the row before it. */
  record(job: JobRow, events: readonly LifecycleEvent[], at: Instant): void {
    const tally = this.#tallies.of(job.type, job.queue);
    if (at >= this.minutes.endsAt) this.minutes.nextMinute(at);
    for (const event of events) {
      tally.record(job, event, at);
      const simple = BY_EVENT[event.name];
      if (simple) this.#simple[simple] += 1;
      if (event.late) this.#simple.late += 1;
      // Every timeout has an error, and most events have none.
      if (event.error === undefined) continue;
      const kind = countedKind(event);
      if (!kind) continue;
      tally.counts[kind] += 1;
      this.#countTimeout(job, kind);
    }
  }

  #countTimeout(job: JobRow, kind: CountedKind): void {
    const mode = job.policy?.mode ?? "fail";
    const known = this.#timeouts.get(`${kind} ${mode} ${job.type} ${job.queue}`);
    if (known) known.count += 1;
    else if (this.#timeouts.size < MOST_TIMEOUT_COUNTS) this.#addTimeout(kind, mode, job.type, job.queue);
    else this.#addTimeout(kind, mode, OTHER, OTHER);
  }

  #addTimeout(kind: CountedKind, mode: string, type: string, queue: string): void {
    const key = `${kind} ${mode} ${type} ${queue}`;
    const entry = this.#timeouts.get(key) ?? { kind, mode, type, queue, count: 0 };
    entry.count += 1;
    this.#timeouts.set(key, entry);
  }

  /** Adds the milliseconds between a deadline and its execution. */
  fired(lateness: number): void {
    this.#lateness.add(lateness);
  }

  snapshot(): CounterSnapshot {
    return {
      ...this.#simple,
      sagas: this.sagas.snapshot(),
      timeouts: [...this.#timeouts.values()].map((entry) => ({ ...entry })),
      lateness: this.#lateness.snapshot(),
      tallies: this.#tallies.snapshot(),
      unattended: Array.from(this.#unattended, ([queue, count]) => ({ queue, count })),
    };
  }
}
