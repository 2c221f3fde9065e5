import type { LogHistogram } from "./histogram.ts";
import type { CountedKind, SeriesSum } from "./series.ts";

/** Durations in milliseconds, with an error of at most 3.2 %. `count` and `mean` are exact. */
export interface Percentiles {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** What jobs did in a period. */
export interface JobStats {
  readonly enqueued: number;
  /** Attempts that started, that failed, and that failed and are retried. */
  readonly started: number;
  readonly failed: number;
  readonly retrying: number;
  readonly completed: number;
  readonly discarded: number;
  readonly cancelled: number;
  /** Discarded jobs that are kept as dead letters. */
  readonly deadLettered: number;
  /** Completed after the soft signal and before the hard deadline. */
  readonly late: number;
  /** Completed in time, with more than 80 % of a limit used. */
  readonly nearMisses: number;
  readonly timeouts: Readonly<Record<CountedKind, number>>;
  /**
   * Of the jobs that completed or were ended by a timeout, the share that completed in time; null if there were none.
   * Jobs that failed by an error or were cancelled say nothing about deadlines.
   */
  readonly attainment: number | null;
  /** Completed, discarded and cancelled jobs per second. */
  readonly throughput: number;
  /** From when a job was due to its start. */
  readonly wait: Percentiles | null;
  /** Attempts that succeeded; `failedRun` has those that did not. */
  readonly run: Percentiles | null;
  readonly failedRun: Percentiles | null;
}

export function percentilesOf(histogram: LogHistogram): Percentiles | null {
  if (histogram.total === 0) return null;
  const at = (share: number) => histogram.percentile(share) as number;
  return {
    count: histogram.total,
    mean: histogram.sum / histogram.total,
    p50: at(0.5),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    max: at(1),
  };
}

/** The statistics of a sum over `span` milliseconds. */
export function statsOf({ counts, durations }: SeriesSum, span: number): JobStats {
  const met = counts.completed - counts.late;
  const timed = met + counts.missed;
  const ended = counts.completed + counts.discarded + counts.cancelled;
  const { execution, total, enqueue_ttl, stalled, visibility } = counts;
  return {
    enqueued: counts.enqueued,
    started: counts.started,
    failed: counts.failed,
    retrying: counts.retrying,
    completed: counts.completed,
    discarded: counts.discarded,
    cancelled: counts.cancelled,
    deadLettered: counts.deadLettered,
    late: counts.late,
    nearMisses: counts.nearMisses,
    timeouts: { execution, total, enqueue_ttl, stalled, visibility },
    attainment: timed === 0 ? null : met / timed,
    throughput: span > 0 ? (ended * 1_000) / span : 0,
    wait: percentilesOf(durations.wait),
    run: percentilesOf(durations.run),
    failedRun: percentilesOf(durations.failedRun),
  };
}
