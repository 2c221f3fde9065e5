import type { Rank } from "../core/job/job.ts";

/** The line of a waiting job: the available jobs of a queue, or the jobs that wait for a limit. */
export type Line = { readonly queue: string } | { readonly limitKey: string };

/** The available jobs of one fair key and priority. */
export interface FairLine {
  readonly queue: string;
  readonly fairKey: string;
}

/** What waits of one fair key in one priority. */
export interface ShareRow {
  readonly key: string;
  /** The rank of its best job, which says its priority and when it became due. */
  readonly rank: Rank;
  /** Available jobs. The count stops at a bound. */
  readonly waiting: number;
}
