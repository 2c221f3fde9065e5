import type { Random } from "../random.ts";
import type { Json } from "../schema.ts";
import { earlier, formatDuration, type Instant } from "../time.ts";
import { activeWakeAt, softKind, waitingWake } from "./deadlines.ts";
import {
  dueAtOf,
  type ErrorCause,
  type ErrorRecord,
  type Fence,
  type JobDocuments,
  type JobImage,
  type JobRow,
  type Policy,
  rankOf,
  type Terminal,
} from "./job.ts";
import { retentionOf } from "./policy.ts";
import { backoffDelay, isExcepted } from "./retry.ts";
import { unstartedImage } from "./unstarted-image.ts";

/** Lifecycle events in Open Job Spec's own names; they are emitted after the commit they tell of (SEMANTICS 3.12). */
export const LIFECYCLE_EVENTS = [
  "job.enqueued",
  "job.scheduled",
  "job.started",
  "job.completed",
  "job.timeout",
  "job.total_timeout",
  "job.stalled",
  "job.visibility_timeout",
  "job.ttl_expired",
  "job.expired",
  "job.failed",
  "job.retrying",
  "job.discarded",
  "job.cancelled",
  "job.released",
  "job.snoozed",
  "job.claim_expired",
  "job.extended",
  "job.retried",
] as const;

export type LifecycleEventName = (typeof LIFECYCLE_EVENTS)[number];

export interface LifecycleEvent {
  readonly name: LifecycleEventName;
  readonly error?: ErrorRecord;
  readonly dueAt?: Instant;
  readonly late?: true;
  readonly deadLetter?: true;
}

/**
 * Why an event changes nothing. `too_close`: a deadline may or may not have passed, so ask again in a moment.
 * `lease_over`: the claim may have run out, so nothing may be entered under it.
 */
export type Rejection =
  | "invalid_state"
  | "too_close"
  | "lease_over"
  | "timing_out"
  | "not_due"
  /** Its turn in a workflow has not come. */
  | "not_reached"
  /** A workflow that has not ended counts on it. */
  | "in_workflow";

export type Decision =
  | {
      readonly ok: true;
      readonly image: JobImage;
      readonly documents?: JobDocuments;
      /** The fence to write, where the verdict voids the one that a running attempt holds. */
      readonly fence?: Fence;
      /** Delete instead of keep: retention is 0 and nobody waits for the result. */
      readonly drop?: true;
      readonly events: readonly LifecycleEvent[];
    }
  | { readonly ok: false; readonly because: Rejection };

/** An error before the job knows which attempt it belongs to. */
export interface ErrorInput {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ErrorCause;
  readonly details?: Json;
}

const HISTORY_LIMIT = 20;
const AWAITED_FOR = 60_000;

export function withError(job: JobRow, record: ErrorRecord): readonly ErrorRecord[] {
  return [...(job.errors ?? []), record].slice(-HISTORY_LIMIT);
}

/** Whether all that a job of a workflow waits for has ended. One with a limit then needs only the word of its judge. */
export function isStepReady({
  limitKey,
  needs,
  options,
}: Pick<JobRow, "limitKey" | "needs" | "options">): boolean {
  return options?.step?.waitsFor !== undefined && needs === (limitKey === null ? 0 : 1);
}

/** Whether a job waits for its limit, and for nothing else. */
export function waitsForLimit(job: Pick<JobRow, "state" | "needs" | "options">): boolean {
  return job.state === "pending" && job.needs === 0 && job.options?.limit !== undefined;
}

/**
 * Where a job goes that comes back from active to be claimed again. It keeps its place, but a start that counts against
 * a rate is spent: for another one it goes back to its limit, where it is among the first.
 */
export function stateBack(job: JobRow): "available" | "pending" {
  return job.startedAt !== null && job.options?.limit?.rate ? "pending" : "available";
}

/** The image of a job that waits again: nothing of the attempt that is over remains on it. */
export function waitingImage(
  job: JobRow,
  state: "available" | "scheduled" | "retryable" | "pending",
  changes: {
    dueAt?: Instant;
    attempt?: number;
    returns?: number;
    expiredClaims?: number;
    waitAt?: Instant | null;
    totalAt?: Instant | null;
  } = {},
): JobImage {
  const rank = rankOf(job.priority, changes.dueAt ?? dueAtOf(job.rank));
  const waitAt = changes.waitAt === undefined ? job.waitAt : changes.waitAt;
  const totalAt = changes.totalAt === undefined ? job.totalAt : changes.totalAt;
  return unstartedImage(
    {
      state,
      rank,
      attempt: changes.attempt ?? job.attempt,
      returns: changes.returns ?? job.returns,
      expiredClaims: changes.expiredClaims ?? job.expiredClaims,
      waitAt,
      totalAt,
      heartbeat: job.heartbeat,
    },
    waitingWake({ state, rank, waitAt, totalAt }, job.options?.limit),
  );
}

interface Finish {
  readonly documents?: JobDocuments;
  readonly events: readonly LifecycleEvent[];
  readonly deadLetter?: boolean;
  readonly fence?: Fence;
}

/** How many milliseconds a job is kept that ends so; undefined until somebody removes it. */
function keptOf(job: JobRow, state: Terminal, deadLetter: boolean): number | undefined {
  const retention = retentionOf(job.policy, job.options?.retention);
  const kept = deadLetter ? (retention.deadLetter ?? undefined) : retention[state];
  return kept === 0 && job.options?.awaited ? AWAITED_FOR : kept;
}

/** Ends a job. `startedAt` stays only if it ended from active: that is what tells `completed_at` apart on the wire. */
export function finish(job: JobRow, state: Terminal, now: Instant, end: Finish): Decision {
  const deadLetter = end.deadLetter ?? false;
  const keptFor = keptOf(job, state, deadLetter);
  // A workflow may still ask for it: its keeper says from when on it may go.
  const isHeld = job.options?.step !== undefined;
  const image: JobImage = {
    state,
    wake: "judge",
    wakeAt: null,
    rank: job.rank,
    attempt: job.attempt,
    returns: job.returns,
    expiredClaims: job.expiredClaims,
    waitAt: null,
    totalAt: job.totalAt,
    startedAt: job.state === "active" ? job.startedAt : null,
    softAt: job.softAt,
    hardAt: job.hardAt,
    stallAt: null,
    heartbeat: job.heartbeat,
    finishedAt: now,
    pruneAt: isHeld || keptFor === undefined ? null : now + keptFor,
    deadLetter,
  };
  const decision = { ok: true as const, image, events: end.events };
  return {
    ...decision,
    ...(end.documents && { documents: end.documents }),
    ...(end.fence !== undefined && { fence: end.fence }),
    ...(keptFor === 0 && !isHeld && { drop: true as const }),
  };
}

/**
 * Lets go of a finished job whose workflow has ended: from now on it is kept as any other, from its own end on. Null if
 * there is nothing to let go of.
 */
export function letGo(job: JobRow, now: Instant): Extract<Decision, { ok: true }> | null {
  const { step, ...options } = job.options ?? {};
  if (!step || job.finishedAt === null) return null;
  const keptFor = keptOf(job, job.state as Terminal, job.deadLetter);
  return {
    ok: true,
    image: {
      ...imageOf(job),
      pruneAt: keptFor === undefined ? null : Math.max(now, job.finishedAt + keptFor),
    },
    documents: { options: Object.keys(options).length === 0 ? null : options },
    ...(keptFor === 0 && { drop: true as const }),
    events: [],
  };
}

/** The error of a used-up total budget (SEMANTICS 3.9); an inherited deadline is named as such (4.7). */
export function totalError(job: JobRow, now: Instant, predicted: boolean): ErrorRecord {
  const totalAt = job.totalAt as Instant;
  const from = job.options?.inheritedFrom;
  // Where a parent's deadline cut the job's own total, what was left of it is the limit.
  const own = from === undefined ? job.options?.total : undefined;
  const limit = own ?? totalAt - job.createdAt;
  return {
    type: "total_timeout",
    code: "total_timeout",
    message:
      from === undefined
        ? `Timed out (deadline exceeded, ${formatDuration(limit)} total budget)`
        : `Timed out (deadline exceeded, inherited from ${from === job.workflow ? "workflow" : "job"} ${from})`,
    kind: "total",
    limit,
    elapsed: Math.max(0, limit + (now - totalAt)),
    attempt: job.attempt,
    at: now,
    ...(predicted && { predicted: true as const }),
  };
}

/** The error of the soft signal that was given, whatever ended the attempt after it (SEMANTICS 3.3, 3.5). */
export function timeoutError(
  job: JobRow,
  now: Instant,
  more: { cause?: ErrorCause; forced?: true; stack?: string },
): ErrorRecord {
  if (softKind(job) === "total") return { ...totalError(job, now, false), ...more };
  const startedAt = job.startedAt as Instant;
  const limit = (job.softAt as Instant) - startedAt;
  return {
    type: "timeout",
    code: "timeout",
    message: `Timed out after ${formatDuration(limit)}`,
    kind: "execution",
    limit,
    elapsed: now - startedAt,
    attempt: job.attempt,
    at: now,
    ...more,
  };
}

/** The retry stage: one failed attempt becomes a retry or the end of the job (SEMANTICS 4). */
export function settleFailure(
  job: JobRow,
  record: ErrorRecord,
  now: Instant,
  random: Random,
  how: {
    first?: LifecycleEventName;
    discard?: boolean;
    final?: boolean;
    deadLetter?: boolean;
    insist?: boolean;
  },
): Decision {
  const policy = job.policy as Policy;
  const events: LifecycleEvent[] = how.first ? [{ name: how.first, error: record }] : [];
  events.push({ name: "job.failed", error: record });
  const errors = withError(job, record);
  const isAbandoned =
    how.discard === true ||
    (record.type === "timeout" && record.kind === "execution" && policy.mode === "discard");
  if (isAbandoned) return discard(job, errors, now, events, false);
  const isDead = how.deadLetter === true || policy.retry.onExhausted === "dead-letter";
  const isOver =
    record.kind === "total" ||
    how.final === true ||
    how.deadLetter === true ||
    (record.kind === "stalled" && policy.retry.onStall === "discard") ||
    (how.insist !== true && isExcepted(policy.retry.except, record.type)) ||
    job.attempt >= policy.retry.attempts;
  if (isOver) return discard(job, errors, now, events, isDead);
  const delay = backoffDelay(policy.retry.backoff, job.attempt, random);
  const refusal = refuseRetry(job, policy, now, delay);
  if (refusal) {
    events.push({ name: "job.total_timeout", error: refusal });
    return discard(job, [...errors, refusal].slice(-HISTORY_LIMIT), now, events, isDead);
  }
  const dueAt = now + delay;
  events.push({ name: "job.retrying", error: record, dueAt });
  return {
    ok: true,
    image: waitingImage(job, "retryable", { dueAt, expiredClaims: 0 }),
    documents: { errors, policy, progress: null },
    events,
  };
}

/** Why no retry can be scheduled: the budget is over, or what is left of it cannot hold another attempt (SEMANTICS 4.2). */
function refuseRetry(job: JobRow, policy: Policy, now: Instant, delay: number): ErrorRecord | null {
  if (job.totalAt === null) return null;
  if (now >= job.totalAt) return totalError(job, now, false);
  const isBuiltIn = policy.sources.attempt === "built-in";
  const needed = policy.retry.retryFit === "full" && !isBuiltIn ? (policy.attempt ?? 0) : 0;
  const endsAt = now + delay + needed;
  // A retry that would begin at the deadline itself could never be entered, so it does not fit either.
  const fits = needed > 0 ? endsAt <= job.totalAt : endsAt < job.totalAt;
  return fits ? null : totalError(job, now, true);
}

export function discard(
  job: JobRow,
  errors: readonly ErrorRecord[],
  now: Instant,
  events: LifecycleEvent[],
  deadLetter: boolean,
): Decision {
  const error = errors[errors.length - 1];
  events.push({
    name: "job.discarded",
    ...(error && { error }),
    ...(deadLetter && { deadLetter: true as const }),
  });
  return finish(job, "discarded", now, {
    documents: { errors, ...(job.policy && { policy: job.policy }) },
    events,
    deadLetter,
  });
}

/** The mutable columns of a row, for decisions that change only a few of them. */
export function imageOf(job: JobRow): JobImage {
  return {
    state: job.state,
    wake: job.wake,
    wakeAt: job.wakeAt,
    rank: job.rank,
    attempt: job.attempt,
    returns: job.returns,
    expiredClaims: job.expiredClaims,
    waitAt: job.waitAt,
    totalAt: job.totalAt,
    startedAt: job.startedAt,
    softAt: job.softAt,
    hardAt: job.hardAt,
    stallAt: job.stallAt,
    heartbeat: job.heartbeat,
    finishedAt: job.finishedAt,
    pruneAt: job.pruneAt,
    deadLetter: job.deadLetter,
  };
}

/**
 * The same columns of a row that was read from a store, to be written again. While a sweep judges a row, its `wakeAt` is
 * when the next sweep may have it; writing that back would put off whatever is due, so it is worked out anew.
 */
export function rereadImage(job: JobRow): JobImage {
  const image = imageOf(job);
  if (job.finishedAt !== null) return image;
  // What woke it for its turn is gone: only its wakeAt still says so.
  if (isStepReady(job)) return image;
  // A job at its limit is looked at once more: it may have been passed over while somebody else wrote it.
  if (waitsForLimit(job)) {
    const wakeAt = earlier(dueAtOf(job.rank), earlier(job.waitAt, job.totalAt));
    return { ...image, wake: "judge", wakeAt };
  }
  if (job.state !== "active") return { ...image, ...waitingWake(job, job.options?.limit) };
  const wakeAt =
    job.startedAt === null
      ? earlier(job.stallAt, earlier(job.waitAt, job.totalAt))
      : activeWakeAt(job, job.policy?.hears ?? false);
  return { ...image, wake: "judge", wakeAt };
}
