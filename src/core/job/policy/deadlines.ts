import type { JobLimit } from "../../limit/limit.ts";
import { earlier, type Instant } from "../../time.ts";
import type { JobImage, JobRow, Policy, TimeoutKind } from "../job.ts";
import { dueAtOf } from "../job.ts";

/** How long after `hardAt` the sweep leaves the verdict to a worker that still beats (SEMANTICS 3.7). */
export const SWEEP_MARGIN = 1_000;

/** How long after `stallAt` the sweep leaves the verdict to the worker: its last beat may still be on its way. */
const STALL_MARGIN = 500;

/** The lease of a claim: how long a worker may hold a job before it enters the handler. */
export const CLAIM_LEASE = 10_000;
/** Enter a job only if its claim was confirmed within this time, so that a job cancelled before it never starts. */
export const CONFIRMED_WITHIN = 250;
/**
 * A machine that is slow for good confirms no claim within that time. There an answer counts if it was asked for within
 * this time, for the jobs that start at once: otherwise it would claim and release jobs for ever, and run none.
 */
export const SLOWLY_CONFIRMED_WITHIN = CLAIM_LEASE / 4;

export interface AttemptLimits {
  readonly softAt: Instant | null;
  readonly hardAt: Instant | null;
  readonly stallAt: Instant | null;
}

/** The deadlines of one attempt (SEMANTICS 3.2), counted from its anchor. Beats move only `stallAt`. */
export function attemptLimits(anchor: Instant, policy: Policy, totalAt: Instant | null): AttemptLimits {
  const softAt = earlier(policy.attempt === null ? null : anchor + policy.attempt, totalAt);
  const silence = longestSilence(policy);
  return {
    softAt,
    hardAt: softAt === null || policy.grace === null ? null : softAt + policy.grace,
    stallAt: silence === null || policy.beats === "worker" ? null : anchor + silence,
  };
}

/**
 * From when the limits of a started attempt count, derived from its soft deadline. If `total` cut that, the earliest instant
 * from which the attempt would have lasted until `total`: it has been told that deadline, so it must not hear one before it.
 */
export function anchorOf(
  job: Pick<JobRow, "startedAt" | "softAt" | "totalAt">,
  policy: Pick<Policy, "attempt">,
): Instant {
  const startedAt = job.startedAt as Instant;
  if (job.softAt === null || policy.attempt === null) return startedAt;
  const anchor = job.softAt - policy.attempt;
  return job.softAt === job.totalAt ? Math.max(startedAt, anchor) : anchor;
}

/**
 * The shorter of `heartbeat` and a named visibility timeout: the one that runs out first ends the attempt. A built-in
 * heartbeat does not shorten a visibility timeout that was named.
 */
export function longestSilence(policy: Policy): number | null {
  if (policy.visibility === undefined) return policy.heartbeat;
  return policy.sources.heartbeat === "built-in"
    ? policy.visibility
    : earlier(policy.heartbeat, policy.visibility);
}

/** Whether the silence that ran out was a visibility timeout, which has another effect (SEMANTICS 4.3). */
export function isVisibilityTimeout(policy: Policy): boolean {
  return policy.visibility !== undefined && longestSilence(policy) === policy.visibility;
}

/** Which budget the soft signal stands for. If both end at the same instant, it is `total` (SEMANTICS 3.3). */
export function softKind(
  job: Pick<JobRow, "softAt" | "totalAt">,
): Extract<TimeoutKind, "execution" | "total"> {
  return job.softAt !== null && job.softAt === job.totalAt ? "total" : "execution";
}

/** When the allowed silence of a started attempt ends. `seenAt` is the last beat of its worker. */
export function stallAtOf(
  job: Pick<JobImage, "startedAt" | "stallAt" | "heartbeat">,
  seenAt: Instant | null,
): Instant | null {
  if (job.stallAt !== null) return job.stallAt;
  if (job.heartbeat === null || job.startedAt === null) return null;
  return Math.max(job.startedAt, seenAt ?? 0) + job.heartbeat;
}

/**
 * The deadline that caused a decision of the sweep; null if none did. `event` is the first event of the decision.
 * `job` must be the row before the decision. The time since this instant is how late the decision came.
 */
export function deadlineBehind(
  event: string | undefined,
  job: Pick<JobImage, "startedAt" | "hardAt" | "stallAt" | "heartbeat" | "waitAt" | "totalAt">,
  seenAt: Instant | null,
): Instant | null {
  switch (event) {
    case "job.ttl_expired":
      return job.waitAt;
    case "job.timeout":
    case "job.total_timeout":
      // Silence after the soft signal ends an attempt as that timeout, possibly before its hard deadline.
      return job.startedAt === null ? job.totalAt : earlier(job.hardAt, stallAtOf(job, seenAt));
    case "job.stalled":
    case "job.visibility_timeout":
      return stallAtOf(job, seenAt);
    default:
      return null;
  }
}

/**
 * Extra time for a worker that hears the soft signal. Beats travel in batches, so a beat that moves `stallAt` may
 * still be on its way.
 */
export function stallMargin(stallAt: Instant | null, hears: boolean): number {
  return stallAt !== null && hears ? STALL_MARGIN : 0;
}

/**
 * When the sweep must look at a started attempt. This is a lower bound: beats do not move it, and a wake-up that
 * comes too early sets a new one.
 */
export function activeWakeAt(
  job: Pick<JobImage, "startedAt" | "hardAt" | "stallAt" | "heartbeat">,
  hears: boolean,
  seenAt: Instant | null = null,
): Instant | null {
  const decidedAt = job.hardAt === null ? null : job.hardAt + (hears ? SWEEP_MARGIN : 0);
  const silentAt = stallAtOf(job, seenAt);
  return earlier(decidedAt, silentAt === null ? null : silentAt + stallMargin(job.stallAt, hears));
}

/**
 * The largest shift of the limits, in milliseconds. The sweep uses the committed limits and waits half a second longer,
 * so a shift must stay well below that.
 */
const MOST_SHIFT = 300;

/** Whether the starts of this job count against a rate. */
export function isRated({ limitKey, options }: Pick<JobRow, "limitKey" | "options">): boolean {
  return limitKey !== null && options?.limit?.rate !== undefined;
}

/**
 * Whether the start is committed before the handler is entered: an expired claim may mean that the job crashes its worker,
 * a rate must not lose a start, and `onStall: "discard"` must not run a job again whose start was never written. The
 * progress of an earlier attempt is cleared by the start, so that nobody reads it as that of the new one.
 */
export function startsCommitted(job: JobRow, { retry }: Pick<Policy, "retry">): boolean {
  return job.expiredClaims > 0 || job.progress !== null || isRated(job) || retry.onStall === "discard";
}

/** A started attempt whose deadlines count from a later instant; null if that is too late for the committed start. */
export function restarted(job: JobRow, startedAt: Instant, anchor: Instant): JobRow | null {
  const policy = job.policy as Policy;
  const limits = attemptLimits(anchor, policy, job.totalAt);
  const shift = Math.max(
    ...(["hardAt", "stallAt"] as const).map((name) => (limits[name] ?? 0) - (job[name] ?? 0)),
  );
  // A rate counts starts by `startedAt`. A start that is too early would admit the next job too early.
  if (shift > MOST_SHIFT || (isRated(job) && startedAt - (job.startedAt as Instant) > MOST_SHIFT))
    return null;
  const wakeAt = activeWakeAt({ ...limits, startedAt, heartbeat: job.heartbeat }, policy.hears);
  return { ...job, ...limits, startedAt, wakeAt };
}

type WaitingWake = Pick<JobImage, "wake" | "wakeAt">;

/**
 * When the sweep must look at a waiting job, and whether it may simply promote it. A job with a limit must first be
 * admitted, unless it still has its slot.
 */
export function waitingWake(
  job: Pick<JobImage, "state" | "rank" | "waitAt" | "totalAt">,
  limit?: JobLimit,
): WaitingWake {
  const endsAt = earlier(job.waitAt, job.totalAt);
  if (job.state !== "scheduled" && job.state !== "retryable") return { wake: "decide", wakeAt: endsAt };
  const dueAt = dueAtOf(job.rank);
  if (limit !== undefined && !(limit.strict && job.state === "retryable"))
    return { wake: "decide", wakeAt: earlier(dueAt, endsAt) };
  return endsAt !== null && endsAt < dueAt
    ? { wake: "decide", wakeAt: endsAt }
    : { wake: "ready", wakeAt: dueAt };
}
