import { dueAtOf, type JobRow } from "../core/job/job.ts";
import type { LifecycleEvent } from "../core/job/verdict.ts";
import type { Instant } from "../core/time.ts";
import { Histogram, type HistogramSnapshot } from "./histogram.ts";

/** Upper bounds of run times in milliseconds, as Open Job Spec recommends them. */
export const RUN_BOUNDS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
] as const;

/** Upper bounds of queue waits in milliseconds, as Open Job Spec recommends them, with two finer ones before. */
export const WAIT_BOUNDS = [
  1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000,
] as const;

/** How an attempt ended, as the state of its job afterwards. */
export type RunOutcome = "completed" | "retryable" | "discarded" | "cancelled";

export interface Tally {
  readonly type: string;
  readonly queue: string;
  readonly enqueued: number;
  readonly completed: number;
  readonly discarded: number;
  readonly retrying: number;
  readonly cancelled: number;
  /** Ended because they were not started within `wait`. */
  readonly expired: number;
  /** Successes that used more than 90 % of the time to their soft deadline. */
  readonly nearMisses: number;
  /** From the moment a job was due to its start. */
  readonly wait: HistogramSnapshot;
  /** From the start of an attempt to its verdict. */
  readonly run: Readonly<Partial<Record<RunOutcome, HistogramSnapshot>>>;
}

type Count = "enqueued" | "completed" | "discarded" | "retrying" | "cancelled" | "expired" | "nearMisses";

const COUNTS: Partial<Record<LifecycleEvent["name"], Count>> = {
  "job.completed": "completed",
  "job.discarded": "discarded",
  "job.retrying": "retrying",
  "job.cancelled": "cancelled",
  "job.ttl_expired": "expired",
};

const OUTCOMES: Partial<Record<LifecycleEvent["name"], RunOutcome>> = {
  "job.completed": "completed",
  "job.retrying": "retryable",
  "job.discarded": "discarded",
  "job.cancelled": "cancelled",
};

const NEAR = 0.9;

class Series {
  readonly type: string;
  readonly queue: string;
  readonly counts: Record<Count, number> = {
    enqueued: 0,
    completed: 0,
    discarded: 0,
    retrying: 0,
    cancelled: 0,
    expired: 0,
    nearMisses: 0,
  };
  readonly #wait = new Histogram(WAIT_BOUNDS);
  readonly #run: Partial<Record<RunOutcome, Histogram>> = {};

  constructor(type: string, queue: string) {
    this.type = type;
    this.queue = queue;
  }

  record(job: JobRow, event: LifecycleEvent, at: Instant): void {
    const count = COUNTS[event.name];
    if (count) this.counts[count] += 1;
    const { startedAt, softAt } = job;
    if (startedAt === null) return;
    if (event.name === "job.started") this.#wait.add(Math.max(0, startedAt - dueAtOf(job.rank)));
    const outcome = OUTCOMES[event.name];
    if (!outcome) return;
    const elapsed = Math.max(0, at - startedAt);
    this.#run[outcome] ??= new Histogram(RUN_BOUNDS);
    this.#run[outcome].add(elapsed);
    const isNear = softAt !== null && elapsed > NEAR * (softAt - startedAt);
    if (outcome === "completed" && isNear && !event.late) this.counts.nearMisses += 1;
  }

  snapshot(): Tally {
    const run: Partial<Record<RunOutcome, HistogramSnapshot>> = {};
    for (const [outcome, histogram] of Object.entries(this.#run)) {
      run[outcome as RunOutcome] = histogram.snapshot();
    }
    return { type: this.type, queue: this.queue, ...this.counts, wait: this.#wait.snapshot(), run };
  }
}

/** Under this name is counted what would need one series too many. */
export const OTHER = "other";

/** Counts per type and queue. Both may come from anybody over HTTP, so only so many pairs are told apart. */
export class Tallies {
  readonly #most: number;
  readonly #series = new Map<string, Map<string, Series>>();
  readonly #other = new Series(OTHER, OTHER);
  /** The last one asked for: jobs come in runs of one type, and this is on the way of every job. */
  #last: Series | undefined;
  #size = 0;
  #usesOther = false;

  constructor(most: number) {
    this.#most = most;
  }

  of(type: string, queue: string): Series {
    const last = this.#last;
    if (last !== undefined && last.type === type && last.queue === queue) return last;
    this.#last = this.#find(type, queue);
    return this.#last;
  }

  #find(type: string, queue: string): Series {
    const found = this.#series.get(type)?.get(queue);
    if (found) return found;
    // A pair that really has this name shares the series: a page of metrics may not have two of them.
    if (this.#size >= this.#most || (type === OTHER && queue === OTHER)) {
      this.#usesOther = true;
      return this.#other;
    }
    this.#size += 1;
    const series = new Series(type, queue);
    const queues = this.#series.get(type) ?? new Map<string, Series>();
    this.#series.set(type, queues.set(queue, series));
    return series;
  }

  snapshot(): Tally[] {
    const all = [...this.#series.values()].flatMap((queues) => [...queues.values()]);
    if (this.#usesOther) all.push(this.#other);
    return all.map((series) => series.snapshot());
  }
}
