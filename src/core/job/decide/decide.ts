import type { Random } from "../../random.ts";
import { earlier, formatDuration, type Instant } from "../../time.ts";
import { scrubError } from "../documents/redaction.ts";
import {
  dueAtOf,
  type ErrorCause,
  type ErrorRecord,
  fenceSalt,
  type JobImage,
  type JobRow,
  nextFence,
  type Policy,
} from "../job.ts";
import { ALLOWED, type JobEventName } from "../lifecycle.ts";
import {
  activeWakeAt,
  attemptLimits,
  isRated,
  isVisibilityTimeout,
  longestSilence,
  SWEEP_MARGIN,
  softKind,
  stallAtOf,
  stallMargin,
} from "../policy/deadlines.ts";
import { LOCAL_WORKER, policyFor } from "../policy/policy.ts";
import { isExcepted } from "../policy/retry.ts";
import { SHUTDOWN } from "../reasons.ts";
import { checkDecided } from "./check-image.ts";
import {
  causeOf,
  type Decision,
  discard,
  finish,
  imageOf,
  type LifecycleEvent,
  SNOOZED_LATE,
  settleFailure,
  stateBack,
  timeoutError,
  totalError,
  waitingImage,
  waitsForLimit,
  withError,
} from "./decision.ts";
import type { EventOf, JobEvent } from "./job-events.ts";
import { extend, prioritise, retryByHand } from "./operator-rules.ts";
import { unblock } from "./step-rules.ts";
import { claimEndsAt, claimWakeAt } from "./store-formulas.ts";
import { drop, endOfWaiting, reschedule, runNow, wakeWaiting } from "./waiting-rules.ts";
import { writtenRow } from "./written-row.ts";

type Rule<Name extends JobEventName> = (
  job: JobRow,
  event: EventOf<Name>,
  now: Instant,
  random: Random,
) => Decision;

/** The most returns (releases and snoozes together) before the job is ended. */
export const MOST_RETURNS = 1_000;
const MOST_EXPIRED_CLAIMS = 1_000;

/**
 * Decides what happens to a job; nothing else does. It reads only its arguments: the same row, event, time and random
 * numbers always give the same decision. So the simulator can replay it, and it works with any store.
 */
export function decide(job: JobRow, event: JobEvent, now: Instant, random: Random): Decision {
  const allowed = ALLOWED[job.state][event.type];
  if (allowed.length === 0) return { ok: false, because: "invalid_state" };
  const decision = (RULES[event.type] as Rule<JobEventName>)(job, event, now, random);
  if (decision.ok) checkDecided(job, event.type, decision.image);
  return decision;
}

const RULES: { readonly [Name in JobEventName]: Rule<Name> } = {
  activate: (job, _event, now) => {
    if (job.options?.step?.waitsFor) return { ok: false, because: "not_reached" };
    if (waitsForLimit(job)) return { ok: false, because: "waits_for_limit" };
    return { ok: true, image: waitingImage(job, activated(job, now)), events: [] };
  },
  wake: (job, event, now, random) =>
    job.state === "active" ? wakeActive(job, event, now, random) : wakeWaiting(job, now),
  claim: (job, event, now) => claim(job, event, now),
  start: (job, event, now) => start(job, event, now),
  succeed: (job, event, now, random) => succeed(job, event, now, random),
  fail: (job, event, now, random) => fail(job, event, now, random),
  expire: (job, event, now, random) => expire(job, event, now, random),
  stall: (job, event, now, random) => stall(job, now, random, event),
  snooze,
  release: (job, event, now, random) => release(job, event, now, random),
  cancel: (job, event, now, random) => {
    // The steps after it would be decided while the steps before it still run.
    if (!event.halted && job.options?.step?.waitsFor) return { ok: false, because: "not_reached" };
    return finish(job, "cancelled", now, {
      ...(event.keptAtMost !== undefined && { keptAtMost: event.keptAtMost }),
      events: [{ name: "job.cancelled" }],
      fence: nextFence(job.fence, fenceSalt(random)),
      ...(event.replacedBy !== undefined && {
        documents: { options: { ...job.options, replacedBy: event.replacedBy } },
      }),
    });
  },
  extend: (job, event, now) =>
    job.options?.step?.waitsFor ? { ok: false, because: "not_reached" } : extend(job, event, now),
  drop: (job, event, now) =>
    job.options?.step?.waitsFor
      ? { ok: false, because: "not_reached" }
      : drop(job, "queue_full", event.message, now),
  retry: (job, event, now, random) =>
    job.options?.step ? { ok: false, because: "in_workflow" } : retryByHand(job, event, now, random),
  prioritise: (job, event) => prioritise(job, event.priority),
  run: (job, _event, now) => runNow(job, now),
  reschedule,
  unblock: (job, event, now) => unblock(job, event, now),
};

/**
 * A job with a limit waits for its limit. The unit that commits this also decrements `needs`, which blocked
 * admission.
 */
function activated(job: JobRow, now: Instant): "scheduled" | "pending" | "available" {
  if (dueAtOf(job.rank) > now) return "scheduled";
  return job.options?.limit ? "pending" : "available";
}

/** A claim is a lease and no start: it spends no attempt and starts no attempt clock (SEMANTICS 3.1). */
function claim(job: JobRow, event: EventOf<"claim">, now: Instant): Decision {
  const stallAt = claimEndsAt(job.heartbeat, { now, lease: event.lease });
  const image: JobImage = {
    ...waitingImage(job, "available"),
    state: "active",
    wake: "decide",
    wakeAt: claimWakeAt(stallAt, job.waitAt, job.totalAt),
    stallAt,
  };
  return { ok: true, image, fence: nextFence(job.fence, event.salt), events: [] };
}

const STARTED: readonly LifecycleEvent[] = [{ name: "job.started" }];

/**
 * Enters a handler. A job that has certainly ended is discarded. If it may have ended by now, the worker asks again.
 */
function start(job: JobRow, event: EventOf<"start">, now: Instant): Decision {
  const { upper, anchor = now } = event;
  if (job.startedAt !== null) return { ok: false, because: "invalid_state" };
  // The first start fixes the policy for all attempts: a redeploy does not change a job that has begun (SEMANTICS 2).
  const policy = job.policy ? policyFor(job.policy, event.kind ?? LOCAL_WORKER) : event.policy;
  const ended = endOfWaiting(job, now);
  if (ended) return ended;
  // The holder compares its lease with the latest possible time: another worker may already have the job.
  if (job.stallAt !== null && upper >= job.stallAt) return { ok: false, because: "lease_over" };
  const endsAt = earlier(job.totalAt, job.waitAt);
  if (endsAt !== null && Math.max(upper, anchor) >= endsAt) return { ok: false, because: "too_close" };
  const { softAt, hardAt, stallAt } = attemptLimits(anchor, policy, job.totalAt);
  const heartbeat = longestSilence(policy);
  // A rate counts starts, so a start that is committed before the entry is written as late as the entry.
  const startedAt = isRated(job) ? Math.max(now, anchor) : now;
  const image: JobImage = {
    state: "active",
    wake: "decide",
    wakeAt: activeWakeAt({ startedAt, hardAt, stallAt, heartbeat }, policy.hears),
    rank: job.rank,
    attempt: job.attempt + 1,
    returns: job.returns,
    expiredClaims: job.expiredClaims,
    waitAt: null,
    totalAt: job.totalAt,
    startedAt,
    softAt,
    hardAt,
    stallAt,
    heartbeat,
    finishedAt: null,
    pruneAt: null,
    deadLetter: false,
  };
  if (job.policy === policy && job.progress === null) return { ok: true, image, events: STARTED };
  // The progress of the attempt before is kept until here (SEMANTICS 8.2).
  return { ok: true, image, documents: { policy, progress: null }, events: STARTED };
}

const COMPLETED: readonly LifecycleEvent[] = [{ name: "job.completed" }];
const COMPLETED_LATE: readonly LifecycleEvent[] = [{ name: "job.completed", late: true }];

function succeed(job: JobRow, event: EventOf<"succeed">, now: Instant, random: Random): Decision {
  if (job.startedAt === null) return { ok: false, because: "invalid_state" };
  // A result at or after the hard deadline does not count: the verdict was due before it (SEMANTICS 3.4).
  if (job.hardAt !== null && now >= job.hardAt)
    return expire(job, { type: "expire", forced: true }, now, random);
  // The settings say later what a plain limit was. What was learned then is nowhere else.
  const isLearned = job.policy?.adaptive !== undefined;
  const events = event.signalled ? COMPLETED_LATE : COMPLETED;
  if (event.result === undefined && !isLearned) return finish(job, "completed", now, { events });
  const documents = {
    ...(event.result !== undefined && { result: event.result }),
    ...(isLearned && { policy: job.policy }),
  };
  return finish(job, "completed", now, { events, documents });
}

function fail(job: JobRow, event: EventOf<"fail">, now: Instant, random: Random): Decision {
  if (job.startedAt === null) return { ok: false, because: "invalid_state" };
  // An error at or after the hard deadline comes after the verdict that was due (SEMANTICS 3.3).
  const isLate = job.hardAt !== null && now >= job.hardAt;
  const error = scrubError(event.error, job);
  if (event.signalled || isLate) {
    const { discard = false } = event;
    return settleTimeout(job, now, random, { cause: causeOf(error) }, discard);
  }
  const record: ErrorRecord = { ...error, attempt: job.attempt, at: now };
  return settleFailure(job, record, now, random, {
    discard: event.discard ?? false,
    final: event.final ?? false,
    deadLetter: event.deadLetter ?? false,
    insist: event.insist ?? false,
  });
}

function expire(job: JobRow, event: EventOf<"expire">, now: Instant, random: Random): Decision {
  if (job.startedAt === null || job.hardAt === null) return { ok: false, because: "invalid_state" };
  if (now < job.hardAt) return { ok: false, because: "not_due" };
  return settleTimeout(job, now, random, {
    ...(event.forced !== false && { forced: true as const }),
    ...(event.stack !== undefined && { stack: event.stack }),
  });
}

function settleTimeout(
  job: JobRow,
  now: Instant,
  random: Random,
  more: { cause?: ErrorCause; forced?: true; stack?: string },
  discard = false,
): Decision {
  const first = softKind(job) === "total" ? "job.total_timeout" : "job.timeout";
  return settleFailure(job, timeoutError(job, now, more), now, random, { first, discard });
}

/**
 * A started attempt was silent for too long. If the soft signal was due first, the cause is that timeout (SEMANTICS
 * 3.3).
 */
function stall(
  job: JobRow,
  now: Instant,
  random: Random,
  { stack, witnessed = false }: Omit<EventOf<"stall">, "type"> = {},
): Decision {
  if (job.startedAt === null) return { ok: false, because: "invalid_state" };
  const policy = job.policy as Policy;
  const stallAt = witnessed ? now : stallAtOf(job, null);
  if (stallAt === null || now < stallAt) return { ok: false, because: "not_due" };
  if (isSoftFirst(job, stallAt)) {
    return settleTimeout(job, now, random, stack === undefined ? {} : { stack });
  }
  if (isVisibilityTimeout(policy) && !witnessed) return takeBack(job, policy, now, random);
  const limit = job.heartbeat ?? 0;
  const record: ErrorRecord = {
    type: "stalled",
    code: "stalled",
    message: `Stalled: no beat for ${formatDuration(limit)}`,
    kind: "stalled",
    limit,
    elapsed: Math.max(limit, now - stallAt + limit),
    attempt: job.attempt,
    at: now,
    ...(stack !== undefined && { stack }),
  };
  return settleFailure(job, record, now, random, { first: "job.stalled" });
}

/**
 * Whether the soft signal came before the silence. At the same instant the order is total, stalled, execution
 * (SEMANTICS 3.3).
 */
function isSoftFirst(job: JobRow, stallAt: Instant): boolean {
  if (job.softAt === null) return false;
  return job.softAt < stallAt || (job.softAt === stallAt && softKind(job) === "total");
}

/**
 * A named visibility timeout ran out: the job is available again at once, the attempt is spent, and the job is
 * discarded at the limit of attempts (SEMANTICS 4.3).
 */
function takeBack(job: JobRow, policy: Policy, now: Instant, random: Random): Decision {
  const limit = policy.visibility as number;
  const record: ErrorRecord = {
    type: "visibility_timeout",
    code: "visibility_timeout",
    message: `Not reported within its visibility timeout of ${formatDuration(limit)}`,
    limit,
    attempt: job.attempt,
    at: now,
  };
  const isForbidden = policy.retry.onStall === "discard";
  if (isForbidden || job.attempt >= policy.retry.attempts || isExcepted(policy.retry.except, record.type)) {
    return settleFailure(job, record, now, random, { first: "job.visibility_timeout", final: isForbidden });
  }
  return {
    ok: true,
    image: waitingImage(job, stateBack(job), { dueAt: now }),
    documents: { errors: withError(job, record), policy },
    fence: nextFence(job.fence, fenceSalt(random)),
    events: [{ name: "job.visibility_timeout", error: record }],
  };
}

/** The sweep looks at a claimed or running job (SEMANTICS 3.7, 4.3). */
function wakeActive(job: JobRow, event: EventOf<"wake">, now: Instant, random: Random): Decision {
  const { seenAt = null, readAt = now } = event;
  if (job.startedAt === null) return wakeUnstarted(job, now, random, readAt);
  const policy = job.policy as Policy;
  const fence = nextFence(job.fence, fenceSalt(random));
  const stallAt = stallAtOf(job, seenAt);
  const isSilent = stallAt !== null && readAt >= stallAt + stallMargin(job.stallAt, policy.hears);
  const isOverdue = job.hardAt !== null && now >= job.hardAt + (policy.hears ? SWEEP_MARGIN : 0);
  // A late sweep may find both passed. The one that came first is the cause, as it would be for a sweep in time.
  if (isOverdue && !(isSilent && !isSoftFirst(job, stallAt))) {
    return voided(settleTimeout(job, now, random, { forced: true }), fence);
  }
  if (isSilent) return voided(stall({ ...job, stallAt }, now, random), fence);
  const wakeAt = activeWakeAt(job, policy.hears, seenAt);
  return { ok: true, image: { ...imageOf(job), wake: "decide", wakeAt }, events: [] };
}

/** Gives a decision of the sweep a new fence, so that later writes of the silent worker are lost. */
function voided(decision: Decision, fence: number): Decision {
  return decision.ok ? { ...decision, fence: decision.fence ?? fence } : decision;
}

/** A claim whose start was never committed. It spends no attempt and adds an expired claim (SEMANTICS 4.3). */
function wakeUnstarted(job: JobRow, now: Instant, random: Random, readAt: Instant): Decision {
  const fence = nextFence(job.fence, fenceSalt(random));
  // The holder may have entered in time, while its start is still on the way. It checks both limits itself.
  const endsAt = earlier(job.waitAt, job.totalAt);
  const decidedAt = endsAt === null ? null : endsAt + SWEEP_MARGIN;
  const isLeased = job.stallAt !== null && readAt < job.stallAt;
  const ended = isLeased && decidedAt !== null && now < decidedAt ? null : endOfWaiting(job, now);
  if (ended) return voided(ended, fence);
  if (isLeased) {
    const wakeAt = earlier(job.stallAt, decidedAt);
    return { ok: true, image: { ...imageOf(job), wake: "decide", wakeAt }, events: [] };
  }
  const expiredClaims = Math.min(job.expiredClaims + 1, MOST_EXPIRED_CLAIMS);
  return {
    ok: true,
    image: waitingImage(job, "available", { expiredClaims: expiredClaims }),
    // A handler may have reported progress before its start was written. The next attempt begins without it.
    ...(job.progress !== null && { documents: { progress: null } }),
    fence,
    events: [{ name: "job.claim_expired" }],
  };
}

/**
 * Ends the attempt unspent and runs the job again later. If that is past the total, the job ends now, as predicted
 * (SEMANTICS 4.4).
 */
function snooze(job: JobRow, event: EventOf<"snooze">, now: Instant, random: Random): Decision {
  const { dueAt, signalled = false } = event;
  if (job.startedAt === null) return { ok: false, because: "invalid_state" };
  // At the hard deadline it is too late to snooze, as it is for a result (SEMANTICS 3.4).
  if (job.hardAt !== null && now >= job.hardAt)
    return expire(job, { type: "expire", forced: true }, now, random);
  // After the signal it is the timeout, or a handler could go past its limit again and again for free (SEMANTICS 3.5).
  if (signalled) return settleTimeout(job, now, random, { cause: SNOOZED_LATE });
  if (job.totalAt !== null && dueAt >= job.totalAt) {
    const error = totalError(job, now, now < job.totalAt);
    const isDead = job.policy?.retry.onExhausted === "dead-letter";
    return discard(job, withError(job, error), now, [{ name: "job.total_timeout", error }], isDead);
  }
  if (job.returns >= MOST_RETURNS) return tooManyReturns(job, now);
  return {
    ok: true,
    image: waitingImage(job, "scheduled", {
      dueAt,
      attempt: job.attempt - 1,
      returns: job.returns + 1,
    }),
    ...(job.policy && { documents: { policy: job.policy } }),
    events: [{ name: "job.snoozed", dueAt }],
  };
}

/**
 * Gives a job back. A started attempt is not spent. A claim that was not started was never counted. With a delay, a job of
 * a strict limit keeps its slot, or the next job of its key would overtake it.
 */
function release(job: JobRow, event: EventOf<"release">, now: Instant, random: Random): Decision {
  const hasStarted = job.startedAt !== null;
  // Past the hard deadline the verdict is a timeout. At the deadline itself a shutdown comes first (SEMANTICS 3.3).
  const isLate = job.hardAt !== null && now >= job.hardAt + (event.error?.type === SHUTDOWN.type ? 1 : 0);
  if (hasStarted && isLate) return expire(job, { type: "expire" }, now, random);
  if (hasStarted && job.returns >= MOST_RETURNS) return tooManyReturns(job, now);
  const later = job.options?.limit?.strict ? "retryable" : "scheduled";
  const state = event.delay === undefined ? stateBack(job) : later;
  const record = event.error && { ...scrubError(event.error, job), attempt: job.attempt, at: now };
  return {
    ok: true,
    image: waitingImage(job, state, {
      ...(event.delay !== undefined && { dueAt: now + event.delay }),
      attempt: hasStarted ? job.attempt - 1 : job.attempt,
      returns: hasStarted ? job.returns + 1 : job.returns,
    }),
    ...((record || hasStarted) && {
      documents: {
        ...(record && { errors: withError(job, record) }),
        ...(hasStarted && job.policy && { policy: job.policy }),
      },
    }),
    events: [{ name: "job.released", ...(record && { error: record }) }],
  };
}

function tooManyReturns(job: JobRow, now: Instant): Decision {
  const error: ErrorRecord = {
    type: "too_many_returns",
    code: "too_many_returns",
    message: `Released or snoozed ${MOST_RETURNS} times without ending`,
    attempt: job.attempt,
    at: now,
  };
  const isDead = job.policy?.retry.onExhausted === "dead-letter";
  return discard(job, withError(job, error), now, [{ name: "job.failed", error }], isDead);
}

/** The row after a decision is committed. */
export function applied(job: JobRow, decision: Extract<Decision, { ok: true }>): JobRow {
  const { image, documents, fence } = decision;
  const write = { image, ...(documents && { documents }), ...(fence !== undefined && { nextFence: fence }) };
  return writtenRow(job, write, job.rev + 1);
}
