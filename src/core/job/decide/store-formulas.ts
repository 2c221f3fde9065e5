import { earlier, type Instant } from "../../time.ts";
import { type JobRow, nextFence } from "../job.ts";

/*
 * What a store writes to a row without a decision per job: a claim, a promotion and a countdown touch many rows in one
 * statement. A store that holds rows in memory calls these functions. A store with statements of its own repeats the
 * formulas there, and the conformance kit compares what it wrote with these functions.
 *
 * Rows are never changed, only replaced, so a caller keeps what it was given.
 */

/** What a claim brings with it. */
export interface ClaimTerms {
  readonly now: Instant;
  /** Milliseconds. */
  readonly lease: number;
  /** A heartbeat does not cut the claim below this. */
  readonly shortest?: number;
  /** The low 21 bits of the new fence. */
  readonly salt: number;
  readonly worker: string;
}

/** The end of a claim: its lease, or the heartbeat of the job if that is shorter. */
export function claimEndsAt(
  heartbeat: number | null,
  { now, lease, shortest = 0 }: Pick<ClaimTerms, "now" | "lease" | "shortest">,
): Instant {
  return now + Math.min(Math.max(heartbeat ?? lease, shortest), lease);
}

/** When the sweep looks at a claimed job: at the end of the claim, of `wait` or of `total`, whichever is first. */
export function claimWakeAt(stallAt: Instant, waitAt: Instant | null, totalAt: Instant | null): Instant {
  return earlier(stallAt, earlier(waitAt, totalAt)) as Instant;
}

/** **Claim**: an available job that a worker takes. `decide` makes the same of the event `claim`. */
export function claimedRow(row: JobRow, terms: ClaimTerms): JobRow {
  const { now, salt, worker } = terms;
  const stallAt = claimEndsAt(row.heartbeat, terms);
  return {
    ...row,
    state: "active",
    wake: "decide",
    wakeAt: claimWakeAt(stallAt, row.waitAt, row.totalAt),
    stallAt,
    fence: nextFence(row.fence, salt),
    rev: row.rev + 1,
    claimedAt: now,
    worker,
  };
}

/** **Promote** and **admit**: a waiting job whose delay or backoff is over, or whose limit has room. */
export function availableRow(row: JobRow): JobRow {
  return {
    ...row,
    state: "available",
    wake: "decide",
    wakeAt: earlier(row.waitAt, row.totalAt),
    rev: row.rev + 1,
  };
}

/**
 * **Countdown**: a pending or scheduled job needs one job less. At zero needs the sweep decides on it, and at one need too
 * if it has a limit. Only then is it a new revision: without that, an outsider who read the row before would write an
 * older `wakeAt` over it, and the sweep would never look at the job again.
 */
export function countedDownRow(row: JobRow, now: Instant): JobRow {
  const needs = row.needs - 1;
  return needs > (row.limitKey === null ? 0 : 1)
    ? { ...row, needs }
    : { ...row, needs, wake: "decide", wakeAt: now, rev: row.rev + 1 };
}
