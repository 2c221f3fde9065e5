import type { CronSkip } from "../../core/cron/cron.ts";
import type { JobId } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";

interface CronEventDetail {
  readonly at: Instant;
  /** The name of the cron. */
  readonly cron: string;
  /** The type of its jobs. */
  readonly type: string;
  /** The instant of the run; the last one if several were skipped. */
  readonly scheduledFor: Instant;
}

/** A cron enqueued a job. */
export interface CronTriggered extends CronEventDetail {
  readonly name: "cron.triggered";
  readonly job: JobId;
  /** An operator triggered it. */
  readonly manual?: true;
}

/** Instants of a cron passed without a job. */
export interface CronSkipped extends CronEventDetail {
  readonly name: "cron.skipped";
  readonly reason: CronSkip;
  /** How many instants; 100 means 100 or more. */
  readonly count: number;
}
