import type { JobStats } from "../../core/stats/job-stats.ts";
import type { Instant } from "../../core/time.ts";
import type { OldestWaits } from "../../engine/queues/oldest-waits.ts";
import { LATENESS_BOUNDS } from "../../engine/statistics/counters.ts";
import type { HistogramSnapshot } from "../../engine/statistics/lateness-histogram.ts";
import type { Depth } from "../../engine/statistics/statistics.ts";
import { instantText } from "../../ojs/wire-fields.ts";

/** The window of ended jobs. Statistics have these counts, so history costs nothing. */
export const LATELY = "24h";
/** The window of throughput stats. */
export const RECENTLY = "5m";
const RECENT_MINUTES = 5;

type Counted = Pick<JobStats, "completed" | "discarded" | "cancelled"> & { readonly depth: Depth };

/** Jobs by state: waiting and running jobs now, ended jobs within the window. */
export function countsOf({ depth, completed, discarded, cancelled }: Counted) {
  return { ...depth, completed, discarded, cancelled };
}

const rounded = (count: number) => Math.round((count / RECENT_MINUTES) * 100) / 100;

/** Attempts per minute that ended by themselves, and those that failed. */
export function throughputOf(stats: Pick<JobStats, "enqueued" | "completed" | "failed">) {
  const { enqueued, completed, failed } = stats;
  return {
    processed_per_minute: rounded(completed + failed),
    completed_per_minute: rounded(completed),
    failed_per_minute: rounded(failed),
    enqueued_per_minute: rounded(enqueued),
  };
}

export const NO_TIMEOUTS: JobStats["timeouts"] = {
  execution: 0,
  total: 0,
  enqueue_ttl: 0,
  stalled: 0,
  visibility: 0,
};

/** Timeouts per minute, by kind. */
export function timeoutsPerMinute({ timeouts }: Pick<JobStats, "timeouts">) {
  return Object.fromEntries(Object.entries(timeouts).map(([kind, count]) => [kind, rounded(count)]));
}

/** How late deadlines fired in this process. The last count is above all bounds. */
export function latenessFields({ counts, sum, total }: HistogramSnapshot) {
  return { bounds_ms: LATENESS_BOUNDS, counts, sum_ms: sum, total };
}

/** The wait of the oldest available job of each queue, or of one queue. */
export function oldestWaitFields(
  { queues, isComplete }: OldestWaits,
  now: Instant,
  only: string | undefined,
) {
  const named = queues.filter(({ queue }) => only === undefined || queue === only);
  return {
    oldest_waits: named.map(({ queue, job, since }) => ({
      queue,
      job_id: job,
      waiting_since: instantText(since),
      wait_ms: Math.max(0, now - since),
    })),
    oldest_waits_are_complete: isComplete,
  };
}
