import type { TimeoutKind } from "../job/job.ts";
import { type HistogramData, LogHistogram } from "./histogram.ts";

/** What is counted of one type in one queue. */
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

/** A visibility timeout is none of the five, but whoever counts timeouts wants to see it beside them. */
export type CountedKind = TimeoutKind | "visibility";

/** How durations are told apart: how long jobs waited, and how long attempts ran that succeeded or did not. */
export const DURATION_NAMES = ["wait", "run", "failedRun"] as const;
export type DurationName = (typeof DURATION_NAMES)[number];

/** What one type in one queue did in some stretch of time, as it is stored: nothing that is zero or empty. */
export interface SeriesData {
  readonly queue: string;
  readonly type: string;
  readonly counts: Readonly<Partial<Counts>>;
  readonly durations: Readonly<Partial<Record<DurationName, HistogramData>>>;
  /** Attempt timeouts that were seen, in milliseconds, the last one last; 0 is none. */
  readonly limits?: readonly number[];
}

/** So many different attempt timeouts of one type are told apart. */
export const MOST_LIMITS = 5;

/** Written out, so that all of them have one shape: they are counted up for every job. */
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

/** The limits that were seen with another one seen last; the oldest is forgotten. */
export function withLimit(limits: readonly number[], limit: number): readonly number[] {
  return [...limits.filter((other) => other !== limit), limit].slice(-MOST_LIMITS);
}

/** Series added up: of several stretches of time, engines, types or queues. */
export class SeriesSum {
  readonly counts = noCounts();
  readonly durations: Readonly<Record<DurationName, LogHistogram>> = {
    wait: new LogHistogram(),
    run: new LogHistogram(),
    failedRun: new LogHistogram(),
  };
  limits: readonly number[] = [];

  /** Later stretches of time are added after earlier ones, because the limit that was seen last is the one in force. */
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

/** Under this name is counted what would need one series too many. */
export const OTHER = "other";

/** Sums by queue and type, of which only so many are told apart. */
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
