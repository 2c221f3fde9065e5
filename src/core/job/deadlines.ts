import type { JobLimit } from "../limit/limit.ts";
import { earlier, type Instant } from "../time.ts";
import type { JobImage, JobRow, Policy, TimeoutKind } from "./job.ts";
import { dueAtOf } from "./job.ts";

/** How long after `hardAt` the sweep leaves the verdict to a worker that still beats (SEMANTICS 3.7). */
export const SWEEP_MARGIN = 1_000;

/** How long after a handler's own silence the sweep leaves the verdict to its worker, whose last beat may be on its way. */
const STALL_MARGIN = 500;

/** The lease of a claim: how long a worker may hold a job before it enters the handler. */
export const CLAIM_LEASE = 10_000;

export interface AttemptLimits {
  readonly softAt: Instant | null;
  readonly hardAt: Instant | null;
  readonly stallAt: Instant | null;
}

/** The instants of one attempt (SEMANTICS 3.2), counted from its anchor. Beats move `stallAt` only. */
export function attemptLimits(anchor: Instant, policy: Policy, totalAt: Instant | null): AttemptLimits {
  const softAt = earlier(policy.attempt === null ? null : anchor + policy.attempt, totalAt);
  const silence = longestSilence(policy);
  return {
    softAt,
    hardAt: softAt === null || policy.grace === null ? null : softAt + policy.grace,
    stallAt: silence === null || policy.beats === "worker" ? null : anchor + silence,
  };
}

/** From when the limits of a started attempt count, read out of its soft deadline; its start where `total` cut that. */
export function anchorOf(job: Pick<JobRow, "startedAt" | "softAt" | "totalAt">, policy: Policy): Instant {
  const startedAt = job.startedAt as Instant;
  if (job.softAt === null || policy.attempt === null || job.softAt === job.totalAt) return startedAt;
  return job.softAt - policy.attempt;
}

/**
 * The shorter of `heartbeat` and a named visibility timeout: whichever runs out first ends the attempt. A heartbeat that
 * nobody named does not cut short a visibility timeout that somebody did.
 */
export function longestSilence(policy: Policy): number | null {
  if (policy.visibility === undefined) return policy.heartbeat;
  return policy.sources.heartbeat === "built-in"
    ? policy.visibility
    : earlier(policy.heartbeat, policy.visibility);
}

/** Whether the silence that ran out was a visibility timeout, which answers differently (SEMANTICS 4.3). */
export function isVisibilityTimeout(policy: Policy): boolean {
  return policy.visibility !== undefined && longestSilence(policy) === policy.visibility;
}

/** Which budget the soft signal stands for; where both end at one instant, total goes before execution (SEMANTICS 3.3). */
export function softKind(
  job: Pick<JobRow, "softAt" | "totalAt">,
): Extract<TimeoutKind, "execution" | "total"> {
  return job.softAt !== null && job.softAt === job.totalAt ? "total" : "execution";
}

/** The end of the silence allowed to a started attempt; `seenAt` is the last beat of its worker. */
export function stallAtOf(
  job: Pick<JobImage, "startedAt" | "stallAt" | "heartbeat">,
  seenAt: Instant | null,
): Instant | null {
  if (job.stallAt !== null) return job.stallAt;
  if (job.heartbeat === null || job.startedAt === null) return null;
  return Math.max(job.startedAt, seenAt ?? 0) + job.heartbeat;
}

/**
 * The deadline that brought the verdict of a sweep, told by the first event of the verdict; null where none did. The row
 * must be the one that was judged: how late the verdict came is the time since this instant.
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
      // Silence after the soft signal ends an attempt as that timeout, and may do so before its hard deadline.
      return job.startedAt === null ? job.totalAt : earlier(job.hardAt, stallAtOf(job, seenAt));
    case "job.stalled":
    case "job.visibility_timeout":
      return stallAtOf(job, seenAt);
    default:
      return null;
  }
}

/** A `stallAt` on the row is moved by beats that travel in batches, so the sweep gives a worker of ours a moment more. */
export function stallMargin(stallAt: Instant | null, hears: boolean): number {
  return stallAt !== null && hears ? STALL_MARGIN : 0;
}

/** When the sweep must look at a started attempt: a lower bound, since beats do not move it (a spurious wake re-arms). */
export function activeWakeAt(
  job: Pick<JobImage, "startedAt" | "hardAt" | "stallAt" | "heartbeat">,
  hears: boolean,
  seenAt: Instant | null = null,
): Instant | null {
  const judgedAt = job.hardAt === null ? null : job.hardAt + (hears ? SWEEP_MARGIN : 0);
  const silentAt = stallAtOf(job, seenAt);
  return earlier(judgedAt, silentAt === null ? null : silentAt + stallMargin(job.stallAt, hears));
}

/** The sweep goes by the limits it knows and waits half a second longer; no shift of them may come near that. */
const MOST_SHIFT = 300;

/** A started attempt whose clocks run from a later instant; null if that is too late for the start that was committed. */
export function restarted(job: JobRow, startedAt: Instant, anchor: Instant): JobRow | null {
  const policy = job.policy as Policy;
  const limits = attemptLimits(anchor, policy, job.totalAt);
  const shift = Math.max(
    ...(["hardAt", "stallAt"] as const).map((name) => (limits[name] ?? 0) - (job[name] ?? 0)),
  );
  // A rate counts starts by `startedAt`, so one that it knows of too early would let the next in too early.
  const isRated = job.limitKey !== null && job.options?.limit?.rate !== undefined;
  if (shift > MOST_SHIFT || (isRated && startedAt - (job.startedAt as Instant) > MOST_SHIFT)) return null;
  const wakeAt = activeWakeAt({ ...limits, startedAt, heartbeat: job.heartbeat }, policy.hears);
  return { ...job, ...limits, startedAt, wakeAt };
}

type WaitingWake = Pick<JobImage, "wake" | "wakeAt">;

/**
 * When the sweep must look at a waiting job, and whether it can simply promote it. One with a limit goes to its limit
 * first, unless it has kept its place.
 */
export function waitingWake(
  job: Pick<JobImage, "state" | "rank" | "waitAt" | "totalAt">,
  limit?: JobLimit,
): WaitingWake {
  const endsAt = earlier(job.waitAt, job.totalAt);
  if (job.state !== "scheduled" && job.state !== "retryable") return { wake: "judge", wakeAt: endsAt };
  const dueAt = dueAtOf(job.rank);
  if (limit !== undefined && !(limit.strict && job.state === "retryable"))
    return { wake: "judge", wakeAt: earlier(dueAt, endsAt) };
  return endsAt !== null && endsAt < dueAt
    ? { wake: "judge", wakeAt: endsAt }
    : { wake: "ready", wakeAt: dueAt };
}
