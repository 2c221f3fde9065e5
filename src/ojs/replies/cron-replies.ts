import type { JobState } from "./wire-replies.ts";

export interface Cron {
  readonly name: string;
  readonly expression: string;
  readonly timezone: string;
  /** The business calendar on whose working days it fires. */
  readonly calendar?: string;
  readonly closed_days?: "skip" | "next" | "previous";
  readonly overlap_policy: "allow" | "skip" | "cancel_previous";
  readonly missed_policy: "skip" | "once" | { readonly all: unknown };
  readonly enabled: boolean;
  readonly next_run_at: string | null;
  readonly last_run_at: string | null;
  readonly last_job_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly type: string;
  readonly args: unknown;
  readonly options: { readonly queue: string };
}

export interface CronRun {
  readonly scheduled_for: string;
  readonly at: string;
  readonly job_id: string | null;
  readonly state?: JobState;
  readonly started_at?: string;
  readonly completed_at?: string;
  readonly manual?: boolean;
  readonly cancelled_job_id?: string;
  readonly skipped?: "overlap" | "missed" | "failed";
  readonly count?: number;
}
