import type { Random } from "../../random.ts";
import type { Json } from "../../schema.ts";
import { earlier, formatDuration, type Instant } from "../../time.ts";
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
} from "../job.ts";
import type { LifecycleEventName } from "../lifecycle-events.ts";
import { activeWakeAt, softKind, waitingWake } from "../policy/deadlines.ts";
import { retentionOf } from "../policy/policy.ts";
import { backoffDelay, isExcepted } from "../policy/retry.ts";
import { unstartedImage } from "./unstarted-image.ts";

export interface LifecycleEvent {
  readonly name: LifecycleEventName;
  readonly error?: ErrorRecord;
  readonly dueAt?: Instant;
  readonly late?: true;
  readonly deadLetter?: true;
}

/** What an error after the signal leaves on the timeout. */
export function causeOf(error: ErrorInput): ErrorCause {
  return {
    type: error.type,
    code: error.code,
    message: error.message,
    ...(error.stack !== undefined && { stack: error.stack }),
  };
}

/** The cause of a timeout that a snooze came after. */
export const SNOOZED_LATE: ErrorCause = {
  type: "snooze",
  code: "snooze",
  message: "The handler asked to be called again after its deadline",
};

/**
 * Why an event changes nothing. `too_close`: a deadline may or may not have passed; ask again shortly. `lease_over`:
 * the claim may have expired, so no handler may start under it.
 */
export type Rejection =
  | "invalid_state"
  | "too_close"
  | "lease_over"
  | "timing_out"
  | "not_due"
  /** It would be due at or after its `wait` or `total`. */
  | "past_deadline"
  /** It is a step of a workflow and not ready. */
  | "not_reached"
  /** It is a step of a workflow that has not ended. */
  | "in_workflow"
  /** Only its limit holds it. */
  | "waits_for_limit"
  /** Its limit has admitted it, so it cannot go back. */
  | "admitted";

export type Decision =
  | {
      readonly ok: true;
      readonly image: JobImage;
      readonly documents?: JobDocuments;
      /** The new fence, if the decision voids the fence of a running attempt. */
      readonly fence?: Fence;
      /** Delete the job: its retention is 0 and no caller waits for its result. */
      readonly drop?: true;
      readonly events: readonly LifecycleEvent[];
    }
  | { readonly ok: false; readonly because: Rejection };

/** An error without the attempt that it belongs to. */
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

/**
 * Whether all dependencies of a workflow step have ended. With a limit key, one `needs` remains until the step
 * scheduler decides.
 */
export function isStepReady({
  limitKey,
  needs,
  options,
}: Pick<JobRow, "limitKey" | "needs" | "options">): boolean {
  return options?.step?.waitsFor !== undefined && needs === (limitKey === null ? 0 : 1);
}

/** Whether a job waits only for its limit. */
export function waitsForLimit(job: Pick<JobRow, "state" | "needs" | "options">): boolean {
  return job.state === "pending" && job.needs === 0 && job.options?.limit !== undefined;
}

/**
 * The state of a job that goes back from active to be claimed again. It keeps its slot. But its start counted against
 * a rate, so for another start it waits for its limit again, ahead of most others.
 */
export function stateBack(job: JobRow): "available" | "pending" {
  return job.startedAt !== null && job.options?.limit?.rate ? "pending" : "available";
}

/** The image of a job that waits again, without anything of the attempt that ended. */
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
  /** The most milliseconds to keep the job, whatever its retention says. */
  readonly keptAtMost?: number;
}

/** How many milliseconds a job that ends in this state is kept; undefined: until an operator removes it. */
function keptOf(job: JobRow, state: Terminal, deadLetter: boolean): number | undefined {
  const retention = retentionOf(job.policy, job.options?.retention);
  const kept = deadLetter ? (retention.deadLetter ?? undefined) : retention[state];
  return kept === 0 && job.options?.awaited ? AWAITED_FOR : kept;
}

/**
 * Ends a job. `startedAt` stays only if the job was active. By that, the wire decides whether there is a
 * `completed_at`.
 */
export function finish(job: JobRow, state: Terminal, now: Instant, end: Finish): Decision {
  const deadLetter = end.deadLetter ?? false;
  const retained = keptOf(job, state, deadLetter);
  const keptFor =
    end.keptAtMost === undefined ? retained : Math.min(retained ?? end.keptAtMost, end.keptAtMost);
  // Its workflow may still read it. The workflow cleanup decides when it may be pruned.
  const isInWorkflow = job.options?.step !== undefined;
  const image: JobImage = {
    state,
    wake: "decide",
    wakeAt: null,
    rank: job.rank,
    attempt: job.attempt,
    returns: job.returns,
    expiredClaims: job.expiredClaims,
    // A manual retry may keep it, as it may keep `totalAt`. It is null once the job has started.
    waitAt: job.waitAt,
    totalAt: job.totalAt,
    startedAt: job.state === "active" ? job.startedAt : null,
    softAt: job.softAt,
    hardAt: job.hardAt,
    stallAt: null,
    heartbeat: job.heartbeat,
    finishedAt: now,
    pruneAt: isInWorkflow || keptFor === undefined ? null : now + keptFor,
    deadLetter,
  };
  const decision: Writable<Extract<Decision, { ok: true }>> = { ok: true, image, events: end.events };
  if (end.documents) decision.documents = end.documents;
  if (end.fence !== undefined) decision.fence = end.fence;
  if (keptFor === 0 && !isInWorkflow) decision.drop = true;
  return decision;
}

type Writable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

/**
 * Detaches a finished job from its ended workflow. From now on its normal retention applies, counted from its end.
 * Null if there is nothing to detach.
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

/** The error of an exceeded total budget (SEMANTICS 3.9). It names an inherited deadline as such (4.7). */
export function totalError(job: JobRow, now: Instant, predicted: boolean): ErrorRecord {
  const totalAt = job.totalAt as Instant;
  const from = job.options?.inheritedFrom;
  // A parent's deadline cut the total. The limit is what was left of it.
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

/** The error of the soft signal, for every way in which the attempt ended after it (SEMANTICS 3.3, 3.5). */
export function timeoutError(
  job: JobRow,
  now: Instant,
  more: { cause?: ErrorCause; forced?: true; stack?: string },
): ErrorRecord {
  if (softKind(job) === "total") return { ...totalError(job, now, false), ...more };
  const startedAt = job.startedAt as Instant;
  // The soft deadline counts from the anchor, which may lie after the start.
  const limit = job.policy?.attempt ?? (job.softAt as Instant) - startedAt;
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

/** Decides between a retry and the end of the job after a failed attempt (SEMANTICS 4). */
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
    image: waitingImage(job, "retryable", { dueAt }),
    documents: { errors, policy },
    events,
  };
}

/** Why no retry can be scheduled: the budget is over, or another attempt does not fit into it (SEMANTICS 4.2). */
function refuseRetry(job: JobRow, policy: Policy, now: Instant, delay: number): ErrorRecord | null {
  if (job.totalAt === null) return null;
  if (now >= job.totalAt) return totalError(job, now, false);
  const isBuiltIn = policy.sources.attempt === "built-in";
  const needed = policy.retry.retryFit === "full" && !isBuiltIn ? (policy.attempt ?? 0) : 0;
  const endsAt = now + delay + needed;
  // A retry that begins exactly at the deadline could never start, so it does not fit.
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
 * The mutable columns of a row that was read from a store, to be written again. While a sweep holds a row, its
 * `wakeAt` is the end of the hold. Writing that back would delay what is due, so `wakeAt` is computed again.
 */
export function rereadImage(job: JobRow): JobImage {
  const image = imageOf(job);
  if (job.finishedAt !== null) return image;
  // The countdown that woke this step is over. Only its `wakeAt` makes the step scheduler look at it.
  if (isStepReady(job)) return image;
  // Wake a job that waits for its limit once more: an admission may have skipped it while this write was under way.
  if (waitsForLimit(job)) {
    const wakeAt = earlier(dueAtOf(job.rank), earlier(job.waitAt, job.totalAt));
    return { ...image, wake: "decide", wakeAt };
  }
  if (job.state !== "active") return { ...image, ...waitingWake(job, job.options?.limit) };
  const wakeAt =
    job.startedAt === null
      ? earlier(job.stallAt, earlier(job.waitAt, job.totalAt))
      : activeWakeAt(job, job.policy?.hears ?? false);
  return { ...image, wake: "decide", wakeAt };
}
