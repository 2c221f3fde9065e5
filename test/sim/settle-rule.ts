import type { JobRow } from "../../src/core/job/job.ts";
import { hasEnded, isOrphan, type JobLedger } from "./ledger.ts";
import type { Plan } from "./plan.ts";

type Limits = Pick<Plan, "limits" | "settings">;

/**
 * Returns the jobs that should have ended and have not. An orphan never ends, and it keeps its slot of its limit and of
 * its queue. Where orphans keep all slots, the jobs that wait for one are excused too. Such a job may itself keep a slot
 * of a limit: it was admitted, and its queue has no slot. So the excused jobs are collected until no more are found.
 */
export function unsettledJobs(jobs: readonly JobLedger[], limits: Limits): JobLedger[] {
  let open = openOf(jobs).filter((job) => !isOrphan(job));
  const excused = orphansOf(jobs).map(({ row }) => row);
  for (;;) {
    const held = open.filter(({ row }) => waitsInVain(row, excused, limits));
    if (held.length === 0) return open;
    excused.push(...held.map(({ row }) => row));
    open = open.filter((job) => !held.includes(job));
  }
}

export function orphansOf(jobs: readonly JobLedger[]): JobLedger[] {
  return openOf(jobs).filter(isOrphan);
}

function openOf(jobs: readonly JobLedger[]): JobLedger[] {
  return jobs.filter((job) => !job.isGone && !hasEnded(job.row.state));
}

/** A job with a deadline of its own has no excuse: the sweep must end it while it waits. */
function waitsInVain(row: JobRow, excused: readonly JobRow[], limits: Limits): boolean {
  if (row.waitAt !== null || row.totalAt !== null) return false;
  if (row.state === "available") return isQueueFull(row.queue, excused, limits);
  return waitsForLimit(row) && isLimitFull(row.limitKey, excused, limits);
}

/** A rescheduled job asks its limit again and again, and between two requests it is `scheduled`. */
function waitsForLimit({ state, needs, options }: JobRow): boolean {
  const { limit } = options ?? {};
  if (!limit || needs > 0) return false;
  return state === "pending" || (state === "scheduled" && typeof limit.onLimit === "object");
}

function isQueueFull(queue: string, excused: readonly JobRow[], { settings }: Limits): boolean {
  const active = excused.filter((row) => row.queue === queue && row.state === "active").length;
  return active >= (settings[queue]?.concurrency ?? Number.POSITIVE_INFINITY);
}

/** A start that counts against a rate is taken from the admission on, so an admitted job that never starts keeps it. */
function isLimitFull(limitKey: string | null, excused: readonly JobRow[], { limits }: Limits): boolean {
  const limit = limits.find(({ key }) => key === limitKey);
  if (!limit) return false;
  const count = (...states: string[]) =>
    excused.filter((row) => row.limitKey === limitKey && states.includes(row.state)).length;
  return (
    count("available", "active") >= (limit.concurrency ?? Number.POSITIVE_INFINITY) ||
    count("available") >= (limit.rate?.limit ?? Number.POSITIVE_INFINITY)
  );
}
