import type { JobStats } from "../../core/stats/job-stats.ts";
import type { Depth } from "../../engine/statistics/statistics.ts";

/** Jobs that ended are counted over this time: out of the statistics, so that history costs nothing. */
export const LATELY = "24h";
/** The pace is that of this time. */
export const RECENTLY = "5m";
const RECENT_MINUTES = 5;

type Counted = Pick<JobStats, "completed" | "discarded" | "cancelled"> & { readonly depth: Depth };

/** Jobs by state: those that wait or run as they stand now, those that ended as the figures have them. */
export function countsOf({ depth, completed, discarded, cancelled }: Counted) {
  return { ...depth, completed, discarded, cancelled };
}

const rounded = (count: number) => Math.round((count / RECENT_MINUTES) * 100) / 100;

/** Attempts per minute that came to an end of their own, and those of them that failed. */
export function throughputOf(figures: Pick<JobStats, "enqueued" | "completed" | "failed">) {
  const { enqueued, completed, failed } = figures;
  return {
    processed_per_minute: rounded(completed + failed),
    completed_per_minute: rounded(completed),
    failed_per_minute: rounded(failed),
    enqueued_per_minute: rounded(enqueued),
  };
}
