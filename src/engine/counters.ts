import type { JobRow, TimeoutKind } from "../core/job/job.ts";
import type { LifecycleEvent } from "../core/job/verdict.ts";
import { SagaCounters, type SagaCounts } from "./sagas/saga-counters.ts";

/** Upper bounds of the lateness histogram in milliseconds; the last bucket takes the rest. */
export const LATENESS_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 60_000] as const;

export interface TimeoutCount {
  readonly kind: TimeoutKind;
  readonly mode: string;
  readonly type: string;
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
  /** Successes after the soft signal: deadline misses that were let through. */
  readonly late: number;
  /** In-process handlers that ran past their hard deadline and were fenced off. */
  readonly stuck: number;
  /** Writes refused because another fence holds. */
  readonly lost: number;
  /** Writes of which it cannot be known whether they counted, because the row is gone. */
  readonly unknown: number;
  /** Hints and directives about jobs this process no longer holds. */
  readonly ignored: number;
  readonly released: number;
  readonly timeouts: readonly TimeoutCount[];
  readonly sagas: SagaCounts;
  /** How late deadlines fired: counts per bound of LATENESS_BOUNDS, and the sum in milliseconds. */
  readonly lateness: { readonly counts: readonly number[]; readonly sum: number; readonly total: number };
}

type SimpleCounter = Exclude<keyof CounterSnapshot, "timeouts" | "lateness" | "sagas">;

const BY_EVENT: Partial<Record<LifecycleEvent["name"], SimpleCounter>> = {
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

/** Counts of this process since it started; a metrics endpoint reads them, nothing depends on them. */
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
    { kind: TimeoutKind; mode: string; type: string; queue: string; count: number }
  >();
  readonly #lateness: number[] = new Array(LATENESS_BOUNDS.length + 1).fill(0);
  #latenessSum = 0;
  #latenessTotal = 0;

  add(name: SimpleCounter, count = 1): void {
    this.#simple[name] += count;
  }

  /** Counts what a committed decision tells. */
  record(job: JobRow, events: readonly LifecycleEvent[]): void {
    for (const event of events) {
      const simple = BY_EVENT[event.name];
      if (simple) this.#simple[simple] += 1;
      if (event.late) this.#simple.late += 1;
      const kind = event.error?.kind;
      if (kind && TIMEOUT_EVENTS.has(event.name)) this.#countTimeout(job, kind);
    }
  }

  #countTimeout(job: JobRow, kind: TimeoutKind): void {
    const mode = job.policy?.mode ?? "fail";
    const key = `${kind} ${mode} ${job.type} ${job.queue}`;
    const entry = this.#timeouts.get(key);
    if (entry) entry.count += 1;
    else this.#timeouts.set(key, { kind, mode, type: job.type, queue: job.queue, count: 1 });
  }

  /** How many milliseconds after its instant a deadline fired. */
  fired(lateness: number): void {
    let bucket = LATENESS_BOUNDS.findIndex((bound) => lateness <= bound);
    if (bucket === -1) bucket = LATENESS_BOUNDS.length;
    this.#lateness[bucket] = (this.#lateness[bucket] ?? 0) + 1;
    this.#latenessSum += lateness;
    this.#latenessTotal += 1;
  }

  snapshot(): CounterSnapshot {
    return {
      ...this.#simple,
      sagas: this.sagas.snapshot(),
      timeouts: [...this.#timeouts.values()].map((entry) => ({ ...entry })),
      lateness: { counts: [...this.#lateness], sum: this.#latenessSum, total: this.#latenessTotal },
    };
  }
}
