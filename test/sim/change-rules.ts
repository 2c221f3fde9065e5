import type { ErrorRecord } from "../../src/core/job/job.ts";
import { isRated } from "../../src/core/job/policy/deadlines.ts";
import { ROUNDING } from "./handler-rules.ts";
import { type Claim, dueAt, hasEnded, type JobLedger } from "./ledger.ts";
import type { Change } from "./watched-store.ts";

/** What a rule looks at: a change, the job's history up to it, and the true time. */
export interface Seen {
  readonly change: Change;
  readonly job: JobLedger;
  readonly now: number;
  /** The claim that the job was under before the change. */
  readonly claim: Claim | undefined;
  /** Errors that this change added. */
  readonly errors: readonly ErrorRecord[];
  /** When the worker that holds the job last beat, as far as the store knows. */
  readonly seenAt: number;
  /** When a call of the claim's holder to the store last had trouble. */
  readonly troubledAt: number;
}

/** A rule answers what is wrong, or nothing. */
type Rule = (seen: Seen) => string | undefined;

/** How late a duration may end beyond the last reading of the clock: late timers, and clocks that run apart. */
const START_SLACK = 60;

const MOVES: Readonly<Record<string, readonly string[]>> = {
  scheduled: ["scheduled", "available", "pending", "cancelled", "discarded"],
  retryable: ["retryable", "available", "pending", "cancelled", "discarded"],
  available: ["available", "active", "cancelled", "discarded"],
  active: ["active", "available", "pending", "scheduled", "retryable", "completed", "cancelled", "discarded"],
  discarded: ["available", "pending"],
  completed: [],
  cancelled: [],
  pending: ["pending", "available", "scheduled", "cancelled", "discarded"],
};

function isPruned({ change }: Seen): boolean {
  return change.isGone && change.call === "prune";
}

/** Whether this change takes the job out of a claim. */
export function settles({ before, after }: Change): boolean {
  return before?.state === "active" && after.state !== "active";
}

/** Given back: neither spent nor ended. Under a strict limit a job that comes back later is retryable. */
export function isReturn(change: Change): boolean {
  const { before, after } = change;
  if (!settles(change) || !before) return false;
  const spentBefore = before.startedAt === null ? before.attempt : before.attempt - 1;
  if (after.state === "retryable") return after.attempt === spentBefore;
  return ["available", "scheduled", "pending"].includes(after.state);
}

/** The attempt that this change judged, or null where it judged none. */
export function judgedAttempt(change: Change): number | null {
  const { after } = change;
  if (!settles(change) || isReturn(change) || after.state === "cancelled") return null;
  if (after.state === "discarded" && after.startedAt === null) return null;
  return after.attempt;
}

const moves: Rule = (seen) => {
  const { change, job } = seen;
  const { before, after } = change;
  if (!before || isPruned(seen)) return undefined;
  if (!MOVES[before.state]?.includes(after.state))
    return `a job went from ${before.state} to ${after.state} by ${change.call}`;
  if (hasEnded(before.state) && job.retriesAsked < job.lives)
    return `a job that was ${before.state} changed, and nobody had asked for a retry`;
  return undefined;
};

const vanishing: Rule = (seen) => {
  const { change, job, now } = seen;
  if (!change.isGone) return undefined;
  const { after } = change;
  if (!hasEnded(after.state)) return `a job vanished while it was ${after.state}, by ${change.call}`;
  if (after.deadLetter) return "a dead letter vanished";
  if (isPruned(seen)) return after.pruneAt !== null && after.pruneAt <= now ? undefined : "pruned too early";
  return job.expected.dropped.has(after.state)
    ? undefined
    : `a ${after.state} job was deleted in its settle, but its retention keeps it`;
};

const fences: Rule = (seen) => {
  const { change, job, claim } = seen;
  const { before, after, by } = change;
  if (!before || isPruned(seen)) return undefined;
  if (after.fence < job.highestFence) return `the fence fell from ${job.highestFence} to ${after.fence}`;
  const isClaim = before.state === "available" && after.state === "active";
  const isRevival = hasEnded(before.state);
  const isForeign = settles(change) && claim !== undefined && claim.by !== by;
  if ((isClaim || isRevival || isForeign) && after.fence <= before.fence)
    return `the fence ${before.fence} did not grow when the job went to ${after.state}`;
  return undefined;
};

const oneVerdict: Rule = ({ change, claim }) =>
  settles(change) && claim?.settledAt !== undefined ? `claim ${claim.fence} got a second verdict` : undefined;

const attempts: Rule = ({ change, job }) => {
  const { after } = change;
  const { attempts: limit } = job.expected;
  if (after.attempt > limit) return `attempt ${after.attempt} of at most ${limit}`;
  const judged = judgedAttempt(change);
  if (judged === null) return undefined;
  if (job.judged.has(judged)) return `attempt ${judged} was judged twice`;
  if (judged !== job.judged.size + 1)
    return `attempt ${judged} was judged after ${job.judged.size} others of the same life`;
  if (after.state === "retryable" && after.attempt >= limit)
    return `a retry was scheduled after attempt ${after.attempt} of ${limit}`;
  return undefined;
};

/** `wait` ends with the first start (SEMANTICS 1): a handler that was entered in time cannot have come too late. */
const noLateTtl: Rule = ({ errors, claim, change, troubledAt, now }) => {
  const run = claim?.run;
  if (!run || !errors.some(({ type }) => type === "enqueue_ttl_expired")) return undefined;
  // Of a process that died, stood still or could not reach the store, nobody can know that it had entered the handler.
  const isWell =
    !claim.by.isDead && troubledAt < run.enteredAt && claim.by.pausedWithin(run.enteredAt, now) === 0;
  const { waitAt = null } = change.before ?? {};
  return isWell && waitAt !== null && run.enteredAt < waitAt
    ? `expired although its handler was entered ${(waitAt - run.enteredAt).toFixed(1)} ms before waitAt`
    : undefined;
};

/** The engine takes the lower bound of what time it is, so nothing it writes can lie in the future. */
/** The start of a job under a rate is committed before its handler is entered, and says when that will be. */
const LONGEST_START = 5_000;

const noFuture: Rule = ({ change, now }) => {
  const { after } = change;
  for (const name of ["createdAt", "claimedAt", "startedAt", "finishedAt"] as const) {
    const at = after[name];
    const latest =
      name === "startedAt" && isRated(after) ? now + LONGEST_START + START_SLACK + change.by.clockDoubt : now;
    if (at !== null && at > latest) return `${name} lies ${(at - now).toFixed(2)} ms in the future`;
  }
  return undefined;
};

const notEarly: Rule = (seen) => {
  const { change, now, errors } = seen;
  const { before, after } = change;
  if (!before || isPruned(seen)) return undefined;
  const isWaiting = before.state === "scheduled" || before.state === "retryable";
  if (isWaiting && after.state === "available" && now < dueAt(before))
    return `became available ${(dueAt(before) - now).toFixed(2)} ms before it was due`;
  const isClaim = before.state === "available" && after.state === "active";
  if (isClaim && now < dueAt(before)) return "was claimed before it was due";
  const leaseAt = Math.min(before.stallAt ?? 0, seen.job.sweptStallAt ?? Number.POSITIVE_INFINITY);
  if (after.expiredClaims > before.expiredClaims && now < leaseAt)
    return `a claim was taken back ${(leaseAt - now).toFixed(2)} ms before its lease was over`;
  for (const error of errors) {
    const problem = earlyError(seen, error);
    if (problem) return problem;
  }
  return undefined;
};

function earlyError(seen: Seen, error: ErrorRecord): string | undefined {
  const { change, now } = seen;
  const { before, after } = change;
  const early = (instant: number | null | undefined, what: string) =>
    instant !== null && instant !== undefined && now < instant
      ? `${error.type} fell ${(instant - now).toFixed(2)} ms before ${what}`
      : undefined;
  switch (error.type) {
    case "total_timeout":
      return error.predicted || isBeforeExtension(seen) ? undefined : early(after.totalAt, "totalAt");
    case "enqueue_ttl_expired":
      return early(before?.waitAt, "waitAt");
    case "timeout":
      return (
        early(knownSoftAt(seen), "softAt") ?? early(fullTime(seen, error), "the attempt had its full time")
      );
    case "stalled":
      return early(silentUntil(seen, error), "the silence was over");
    default:
      return undefined;
  }
}

/** An extension that the worker had not heard of when the old deadline came does not take its verdict back (SEMANTICS 3.3). */
function isBeforeExtension({ change, claim, job }: Seen): boolean {
  const run = claim?.run;
  const isSignalled = run !== undefined && (!run.isListening || run.signalledAt !== undefined);
  return job.isExtended && change.by === claim?.by && isSignalled;
}

function knownSoftAt(seen: Seen): number | null | undefined {
  const { before } = seen.change;
  return before?.startedAt == null || isBeforeExtension(seen) ? undefined : before.softAt;
}

/** When the silence that an error names could end at the earliest. */
function silentUntil(seen: Seen, error: ErrorRecord): number | undefined {
  const { change, claim, job, seenAt } = seen;
  const { before } = change;
  if (isBeforeExtension(seen)) return undefined;
  const limit = error.limit ?? 0;
  if (before?.startedAt == null) {
    // Only the holder can judge what the store does not know of; later beats come after its verdict.
    const beats = (claim?.run?.beats ?? []).filter((at) => at <= error.at);
    const isUncertain = job.isExtended || claim?.by.mayLag(Math.max(...beats));
    return isUncertain ? undefined : Math.max(...beats) + limit - ROUNDING;
  }
  if (before.stallAt !== null) return Math.min(before.stallAt, job.sweptStallAt ?? before.stallAt);
  return Math.max(before.startedAt, seenAt) + limit;
}

/**
 * From the moment the handler was really entered, an attempt has its whole limit, and its grace if it is ended by force,
 * unless `total` is over before.
 */
function fullTime({ change, job, claim }: Seen, error: ErrorRecord): number | undefined {
  const { attempt, grace } = job.expected;
  const run = claim?.run;
  if (!run || job.isExtended || attempt === undefined || attempt === null) return undefined;
  if (run.claim.by.mayLag(run.enteredAt)) return undefined;
  const softAt = Math.min(run.enteredAt + attempt, change.after.totalAt ?? Number.POSITIVE_INFINITY);
  return softAt + (error.forced ? (grace ?? 0) : 0) - ROUNDING;
}

/** What the retry policy must have made of the error (SEMANTICS 1, 4.1, 4.3, 4.5). */
const policy: Rule = ({ change, job, errors }) => {
  const { after } = change;
  const { expected } = job;
  const error = errors[0];
  if (!error || !settles(change)) return undefined;
  const isAbandoned = error.type === "timeout" && expected.mode === "discard";
  if (isAbandoned && (after.state !== "discarded" || after.deadLetter))
    return `mode discard: an attempt timeout made the job ${after.state}`;
  if (after.state === "retryable") {
    if (error.type === "stalled" && expected.onStall === "discard") return "onStall discard: retried";
    if (expected.except.includes(error.type)) return `except names ${error.type}: retried`;
  }
  const isNeverDead = error.type === "enqueue_ttl_expired" || error.code === "discarded_by_handler";
  if (after.deadLetter && (isNeverDead || expected.onExhausted !== "dead-letter"))
    return `a job that ended by ${error.type} became a dead letter`;
  return undefined;
};

/** A completion needs a handler that returned under that very claim, and in time (SEMANTICS 3.4). */
const earnedResult: Rule = ({ change, job, claim }) => {
  if (change.after.state !== "completed" || !settles(change)) return undefined;
  const run = claim?.run;
  if (!claim || !run?.hasReturned || run.endedAt === undefined)
    return "completed, but no handler had returned under this claim";
  const { longestAttempt: attempt, grace } = job.expected;
  if (job.isExtended || attempt == null || grace == null || run.claim.by.mayLag(run.enteredAt))
    return undefined;
  const late = run.endedAt - run.enteredAt - attempt - grace;
  // A process that could not read the store's clock any faster is late by as much, and never early.
  return late > START_SLACK + claim.by.clockDoubt + run.clockDoubt
    ? `a result was accepted ${late.toFixed(2)} ms after the hard deadline`
    : undefined;
};

/**
 * Budgets are fixed at enqueue (SEMANTICS 2) and never end before they have passed since the call; they are late by no
 * more than the producer knew the time.
 */
const budgets: Rule = ({ change, job, now }) => {
  const { before, after, by } = change;
  if (before !== null) return undefined;
  const { wait, total, delay, askedAt } = job.expected;
  if (after.createdAt < now - 60_000) return "createdAt lies in the past";
  const earliest = by.mayLag(askedAt) ? after.createdAt : Math.floor(askedAt);
  const latest = askedAt + by.clockDoubtSince(askedAt) + START_SLACK;
  if (wait !== null && (after.waitAt === null || after.waitAt > latest + wait))
    return `waitAt is ${after.waitAt}, not within ${latest + wait}`;
  if (total !== null && (after.totalAt === null || after.totalAt > latest + total))
    return `totalAt is ${after.totalAt}, not within ${latest + total}`;
  if (job.payload.parent !== undefined) return undefined;
  if (total === null ? after.totalAt !== null : (after.totalAt as number) < earliest + total)
    return `totalAt is ${after.totalAt}, which cuts ${total} ms since ${earliest}`;
  if (delay !== null && dueAt(after) < earliest + delay)
    return `due at ${dueAt(after)}, which cuts a delay of ${delay} ms since ${earliest}`;
  return undefined;
};

/** An adaptive limit is between its bounds, and the first start fixes it for all attempts (SEMANTICS 16.2, 16.5). */
const frozenLimit: Rule = ({ change, job }) => {
  const { before, after } = change;
  const { adaptive, attempt } = after.policy ?? {};
  if (adaptive) {
    const { floor, ceiling } = adaptive.rule;
    if (attempt == null || attempt < floor || attempt > ceiling)
      return `the limit ${attempt} is not between ${floor} and ${ceiling}`;
    if (attempt !== (adaptive.learned?.limit ?? ceiling))
      return `the limit ${attempt} is not what was learned`;
  }
  const known = before?.policy;
  if (!known?.adaptive || !after.policy || job.isExtended) return undefined;
  return known.attempt === attempt ? undefined : `the limit went from ${known.attempt} to ${attempt}`;
};

/** Every write to a job is held against all of these. */
export const CHANGE_RULES: readonly { readonly name: string; readonly check: Rule }[] = [
  { name: "only moves of the lifecycle; ended jobs stay as they are", check: moves },
  { name: "no job is lost", check: vanishing },
  { name: "fences only grow", check: fences },
  { name: "one verdict per claim", check: oneVerdict },
  { name: "attempts never over the limit", check: attempts },
  { name: "nothing is written into the future", check: noFuture },
  { name: "nothing fires early", check: notEarly },
  { name: "a job that has begun never expires as one that has not", check: noLateTtl },
  { name: "the retry policy decides", check: policy },
  { name: "no result without a handler, none after the hard deadline", check: earnedResult },
  { name: "budgets are fixed at enqueue", check: budgets },
  { name: "an adaptive limit is frozen at the first start", check: frozenLimit },
];
