import type { LifecycleEvent } from "../../core/job/decide/decision.ts";
import { dueAtOf, type JobRow } from "../../core/job/job.ts";
import { isNear } from "../../core/job/policy/near-miss.ts";
import { type HistogramData, type HistogramMark, LogHistogram } from "../../core/stats/histogram.ts";
import {
  COUNT_NAMES,
  type CountName,
  type Counts,
  DURATION_NAMES,
  type DurationName,
  noCounts,
  OTHER,
  type SeriesData,
  withLimit,
} from "../../core/stats/series.ts";
import type { Instant } from "../../core/time.ts";
import { Histogram, type HistogramSnapshot } from "./lateness-histogram.ts";

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
  /** Jobs that did not start within `wait`. */
  readonly expired: number;
  /** Successes in time that used more than 80 % of a limit. */
  readonly nearMisses: number;
  /** Jobs that were kept as dead letters. */
  readonly deadLettered: number;
  /** From the moment a job was due to its start. */
  readonly wait: HistogramSnapshot;
  /** From the start of an attempt to its verdict. */
  readonly run: Readonly<Partial<Record<RunOutcome, HistogramSnapshot>>>;
}

/** The counter of each event, and how its attempt ended. One look-up, because every job comes here twice. */
const COUNTED: Partial<
  Record<LifecycleEvent["name"], { readonly as: CountName; readonly end?: RunOutcome }>
> = {
  "job.enqueued": { as: "enqueued" },
  "job.scheduled": { as: "enqueued" },
  "job.started": { as: "started" },
  "job.completed": { as: "completed", end: "completed" },
  "job.failed": { as: "failed" },
  "job.discarded": { as: "discarded", end: "discarded" },
  "job.retrying": { as: "retrying", end: "retryable" },
  "job.cancelled": { as: "cancelled", end: "cancelled" },
  "job.ttl_expired": { as: "expired" },
};

/** Values of a series at the last `mark`. */
interface SeriesMark {
  readonly counts: Counts;
  readonly durations: Readonly<Record<DurationName, HistogramMark>>;
}

export class Series {
  readonly type: string;
  readonly queue: string;
  /** The index among all series of this process. */
  readonly ordinal: number;
  readonly counts = noCounts();
  readonly #wait = new Histogram(WAIT_BOUNDS);
  readonly #run: Partial<Record<RunOutcome, Histogram>> = {};
  readonly #durations: Readonly<Record<DurationName, LogHistogram>> = {
    wait: new LogHistogram(),
    run: new LogHistogram(),
    failedRun: new LogHistogram(),
  };
  #limits: readonly number[] = [];
  #limit = -1;
  #mark: SeriesMark | undefined;

  constructor(type: string, queue: string, ordinal: number) {
    this.type = type;
    this.queue = queue;
    this.ordinal = ordinal;
  }

  record(job: JobRow, event: LifecycleEvent, at: Instant): void {
    const counted = COUNTED[event.name];
    if (!counted) return;
    this.counts[counted.as] += 1;
    const { startedAt } = job;
    const outcome = counted.end;
    if (outcome === "discarded") this.#recordEnd(event);
    if (startedAt === null) return;
    if (outcome) this.#recordRun(job, startedAt, outcome, event, at);
    else if (counted.as === "started") {
      const waited = Math.max(0, startedAt - dueAtOf(job.rank));
      this.#wait.add(waited);
      this.#durations.wait.add(waited);
    }
  }

  #recordRun(job: JobRow, startedAt: Instant, outcome: RunOutcome, event: LifecycleEvent, at: Instant): void {
    const elapsed = Math.max(0, at - startedAt);
    this.#run[outcome] ??= new Histogram(RUN_BOUNDS);
    this.#run[outcome].add(elapsed);
    const limit = job.policy?.attempt ?? 0;
    if (limit !== this.#limit) this.#sawLimit(limit);
    if (outcome !== "completed") {
      this.#durations.failedRun.add(elapsed);
      return;
    }
    this.#durations.run.add(elapsed);
    if (event.late) {
      this.counts.late += 1;
      this.counts.missed += 1;
    } else if (isNear(job, startedAt, at)) this.counts.nearMisses += 1;
  }

  #recordEnd({ error, deadLetter }: LifecycleEvent): void {
    if (error?.kind !== undefined) this.counts.missed += 1;
    if (deadLetter) this.counts.deadLettered += 1;
  }

  #sawLimit(limit: number): void {
    this.#limit = limit;
    this.#limits = withLimit(this.#limits, limit);
  }

  /** Counts since the last `mark`; null if there are none. */
  sinceMark(): SeriesData | null {
    const mark = this.#mark;
    const counts: Partial<Counts> = {};
    for (const name of COUNT_NAMES) {
      const count = this.counts[name] - (mark?.counts[name] ?? 0);
      if (count !== 0) counts[name] = count;
    }
    if (Object.keys(counts).length === 0) return null;
    const durations: Partial<Record<DurationName, HistogramData>> = {};
    for (const name of DURATION_NAMES) {
      const data = this.#durations[name].since(mark?.durations[name]);
      if (data) durations[name] = data;
    }
    const { queue, type } = this;
    return { queue, type, counts, durations, ...(this.#limits.length > 0 && { limits: this.#limits }) };
  }

  /** Starts a new difference for `sinceMark`. */
  mark(): void {
    const { wait, run, failedRun } = this.#durations;
    const durations = { wait: wait.mark(), run: run.mark(), failedRun: failedRun.mark() };
    this.#mark = { counts: { ...this.counts }, durations };
    this.#limits = this.#limits.slice(-1);
  }

  snapshot(): Tally {
    const run: Partial<Record<RunOutcome, HistogramSnapshot>> = {};
    for (const [outcome, histogram] of Object.entries(this.#run)) {
      run[outcome as RunOutcome] = histogram.snapshot();
    }
    const { enqueued, completed, discarded, retrying, cancelled, expired } = this.counts;
    const { nearMisses, deadLettered } = this.counts;
    const counts = { enqueued, completed, discarded, retrying, cancelled, expired, nearMisses, deadLettered };
    return { type: this.type, queue: this.queue, ...counts, wait: this.#wait.snapshot(), run };
  }
}

/** Counts per type and queue. HTTP clients choose both, so the number of pairs is bounded. */
export class Tallies {
  readonly #most: number;
  readonly #series = new Map<string, Map<string, Series>>();
  readonly #other = new Series(OTHER, OTHER, 0);
  /** The series of the last call: jobs come in runs of one type, and every job passes here. */
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
    const known = this.#series.get(type)?.get(queue);
    if (known) return known;
    // A pair that is really named "other" shares this series: metrics must not contain it twice.
    if (this.#size >= this.#most || (type === OTHER && queue === OTHER)) {
      this.#usesOther = true;
      return this.#other;
    }
    this.#size += 1;
    const series = new Series(type, queue, this.#size);
    const queues = this.#series.get(type) ?? new Map<string, Series>();
    this.#series.set(type, queues.set(queue, series));
    return series;
  }

  all(): Series[] {
    const all = [...this.#series.values()].flatMap((queues) => [...queues.values()]);
    if (this.#usesOther) all.push(this.#other);
    return all;
  }

  snapshot(): Tally[] {
    return this.all().map((series) => series.snapshot());
  }
}
