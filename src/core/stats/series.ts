import type { TimeoutKind } from "../job/job.ts";
import { type HistogramData, LogHistogram } from "./histogram.ts";

/** What is counted per type and queue. */
export const COUNT_NAMES = [
  "enqueued",
  "started",
  "completed",
  "late",
  "failed",
  "retrying",
  "discarded",
  "deadLettered",
  "cancelled",
  "expired",
  "nearMisses",
  "missed",
  "execution",
  "total",
  "enqueue_ttl",
  "stalled",
  "visibility",
] as const;

export type CountName = (typeof COUNT_NAMES)[number];
export type Counts = Record<CountName, number>;

/** A visibility timeout is none of the five timeouts, but statistics of timeouts show it too. */
export type CountedKind = TimeoutKind | "visibility";

/** The measured durations: how long jobs waited, and how long attempts ran that succeeded or failed. */
export const DURATION_NAMES = ["wait", "run", "failedRun"] as const;
export type DurationName = (typeof DURATION_NAMES)[number];

/** The stored counts of one type in one queue and one period, without zeros. */
export interface SeriesData {
  readonly queue: string;
  readonly type: string;
  readonly counts: Readonly<Partial<Counts>>;
  readonly durations: Readonly<Partial<Record<DurationName, HistogramData>>>;
  /** The attempt timeouts that were seen, in milliseconds, the latest last. 0 means none. */
  readonly limits?: readonly number[];
}

/** The most different attempt timeouts that are remembered per type. */
export const MOST_LIMITS = 5;

/** Written out, so that all counts have one hidden class: they are incremented for every job. */
export function noCounts(): Counts {
  return {
    enqueued: 0,
    started: 0,
    completed: 0,
    late: 0,
    failed: 0,
    retrying: 0,
    discarded: 0,
    deadLettered: 0,
    cancelled: 0,
    expired: 0,
    nearMisses: 0,
    missed: 0,
    execution: 0,
    total: 0,
    enqueue_ttl: 0,
    stalled: 0,
    visibility: 0,
  };
}

/** The limits with this one as the latest. The oldest is forgotten. */
export function withLimit(limits: readonly number[], limit: number): readonly number[] {
  return [...limits.filter((other) => other !== limit), limit].slice(-MOST_LIMITS);
}

/** Sums series of several periods, engines, types or queues. */
export class SeriesSum {
  readonly counts = noCounts();
  readonly durations: Readonly<Record<DurationName, LogHistogram>> = {
    wait: new LogHistogram(),
    run: new LogHistogram(),
    failedRun: new LogHistogram(),
  };
  limits: readonly number[] = [];

  /** Add earlier periods first, because the latest limit is the one that applies. */
  add({ counts, durations, limits }: SeriesData): void {
    for (const name of COUNT_NAMES) this.counts[name] += counts[name] ?? 0;
    for (const name of DURATION_NAMES) {
      const data = durations[name];
      if (data) this.durations[name].merge(data);
    }
    for (const limit of limits ?? []) this.limits = withLimit(this.limits, limit);
  }

  data(queue: string, type: string): SeriesData {
    const counts: Partial<Counts> = {};
    for (const name of COUNT_NAMES) if (this.counts[name] !== 0) counts[name] = this.counts[name];
    const durations: Partial<Record<DurationName, HistogramData>> = {};
    for (const name of DURATION_NAMES) {
      const data = this.durations[name].data();
      if (data) durations[name] = data;
    }
    return { queue, type, counts, durations, ...(this.limits.length > 0 && { limits: this.limits }) };
  }
}

/** The queue and type under which the series beyond the maximum are counted. */
export const OTHER = "other";

/** Sums by queue and type, at most `most` of them. */
export class SeriesTable {
  readonly #most: number;
  readonly #sums = new Map<string, { readonly queue: string; readonly type: string; sum: SeriesSum }>();

  constructor(most: number) {
    this.#most = most;
  }

  add(data: SeriesData): void {
    this.sumOf(data.queue, data.type).add(data);
  }

  sumOf(queue: string, type: string): SeriesSum {
    const found = this.#sums.get(keyOf(queue, type));
    if (found) return found.sum;
    const isOther = this.#sums.size >= this.#most && (queue !== OTHER || type !== OTHER);
    if (isOther) return this.sumOf(OTHER, OTHER);
    const sum = new SeriesSum();
    this.#sums.set(keyOf(queue, type), { queue, type, sum });
    return sum;
  }

  entries(): readonly { readonly queue: string; readonly type: string; readonly sum: SeriesSum }[] {
    return [...this.#sums.values()];
  }

  data(): SeriesData[] {
    return this.entries().map(({ queue, type, sum }) => sum.data(queue, type));
  }
}

function keyOf(queue: string, type: string): string {
  return JSON.stringify([queue, type]);
}
