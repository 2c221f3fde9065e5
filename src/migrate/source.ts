import type { CronMissed } from "../core/cron/cron.ts";
import type { TimeoutOptions } from "../core/job/policy/policy.ts";
import type { RetryOptions } from "../core/job/policy/retry.ts";
import type { JobLine } from "../core/job/transfer/job-line.ts";
import type { Ruled } from "./translate.ts";

/** What an old system holds. Numbers may change while it runs. */
export interface SourceCounts {
  /** Jobs that an import takes: waiting, delayed, to be retried, and dead. */
  readonly jobs: number;
  /** Jobs that workers of the old system hold. They stay there. */
  readonly active: number;
  readonly crons: number;
}

/** A job of the old system, held until its batch ends. */
export interface SourceJob {
  /** The name in reports: its queue and its id in the old system. */
  readonly name: string;
  readonly ruled: Ruled<JobLine>;
}

/** Some jobs of one pass. Either `remove` or `release` ends it. */
export interface SourceBatch<Job extends SourceJob = SourceJob> {
  readonly jobs: readonly Job[];
  /** The transaction in which the jobs are removed, if the store of curfew is in the same database. */
  readonly tx?: unknown;
  /** Removes jobs of this batch from the old system, and lets go of the others. Returns those that it could not remove. */
  remove(jobs: readonly Job[]): Promise<readonly Job[]>;
  /** Lets go of all of them. */
  release(): Promise<void>;
}

/** A schedule of the old system. */
export interface SourceCron {
  readonly name: string;
  readonly ruled: Ruled<CronSpec>;
  remove(): Promise<void>;
}

/** A cron as `engine.crons` takes it. */
export interface CronSpec {
  readonly name: string;
  readonly cron: string;
  readonly zone: string;
  readonly missed: CronMissed;
  readonly type: string;
  readonly queue: string;
  readonly payload: string;
  readonly priority: number;
  readonly timeouts?: TimeoutOptions;
  readonly retry?: RetryOptions;
}

/** An old system that jobs are moved from. */
export interface Source extends AsyncDisposable {
  /** The same in every run, such as `pg-boss pgboss`. Ids of jobs that were stored and not yet removed are kept under it. */
  readonly name: string;
  /** Whether a batch is inserted and removed in one transaction. */
  readonly isAtomic: boolean;
  counts(): Promise<SourceCounts>;
  crons(): Promise<readonly SourceCron[]>;
  /**
   * One pass over all jobs, in batches of a bounded size. `isDry` changes nothing and holds nothing. Otherwise the
   * workers of the old system do not get a job of the batch before it ends.
   */
  pass(options: { readonly isDry: boolean }): AsyncGenerator<SourceBatch, void, undefined>;
  /** What people must know after a run, such as a queue that was paused. */
  notes(): readonly string[];
}
