import { SLOWLY_CONFIRMED_WITHIN } from "../../src/core/job/policy/deadlines.ts";
import type { Run } from "./ledger.ts";

/** A gap from here on must be noticed by the worker: its limit of 250 ms and one tick of 100 ms, plus late timers. */
const NOTICED_GAP = 450;
/** How late a soft signal may be in a process that is not paused; timers of a machine are up to 40 ms late. */
const SIGNAL_SLACK = 150;
/** What lies between the engine's idea of now and the truth on a healthy network. */
const CLOCK_SLACK = 60;

/** Deadlines are whole milliseconds of a clock that shows whole milliseconds. */
export const ROUNDING = 1;

interface Problem {
  readonly rule: string;
  readonly says: string;
}

/** Whether the start is committed before the entry: after an expired claim or old progress, under a rate, or with onStall discard. */
function isMarkedFirst({ claim, job }: Run): boolean {
  const { expiredClaims, limitKey, options, progress } = claim.row;
  const isRated = limitKey !== null && options?.limit?.rate !== undefined;
  return expiredClaims > 0 || progress !== null || isRated || job.expected.onStall === "discard";
}

/**
 * Until when the job is safely its holder's at the entry: the lease of the claim, or the silence that is allowed to a
 * start that was committed before the entry. Null where nothing is known: another process has the job by now.
 */
function leaseAt(run: Run): number | null {
  const { job, claim } = run;
  const isCommitted = job.row.fence === claim.fence && job.row.startedAt !== null;
  if (!isMarkedFirst(run) && !isCommitted) return claim.row.stallAt;
  if (!isCommitted || job.row.stallAt === null || claim.ownStallAt === null) return null;
  // Another process may have allowed less since, which the holder has not heard.
  return Math.max(job.row.stallAt, claim.ownStallAt);
}

/** The committed start of a marked job is what `wait` asks for; the handler follows a moment later. */
function hasStartedBefore(run: Run, waitAt: number): boolean {
  const { job, claim } = run;
  // Where somebody else has it by now, the row says nothing about what this process had committed.
  const startedAt = job.row.fence === claim.fence ? job.row.startedAt : claim.startedAt;
  return startedAt !== null && startedAt < waitAt + CLOCK_SLACK;
}

/**
 * A process that stands still while it waits for a confirmation may enter the job at once when it hears the answer: a
 * machine that is slow for good would run nothing otherwise.
 */
function isAnsweredAfter(
  { claim: { confirmation }, enteredAt }: Run,
  gap: { readonly from: number },
): boolean {
  if (!confirmation) return false;
  const { sentAt, heardAt } = confirmation;
  return gap.from >= sentAt && heardAt === enteredAt && enteredAt - sentAt <= SLOWLY_CONFIRMED_WITHIN;
}

/** What must hold at the moment a handler is entered (SEMANTICS 3.1, 4.3). */
export function entryProblem(run: Run): Problem | undefined {
  const { job, claim, enteredAt: now, attempt } = run;
  const { row } = claim;
  const past = (rule: string, says: string): Problem => ({ rule, says });
  const deadlineRule = "no handler is entered past a deadline";
  if (row.totalAt !== null && now >= row.totalAt && !job.isExtended)
    return past(deadlineRule, `entered ${(now - row.totalAt).toFixed(2)} ms after totalAt`);
  if (row.waitAt !== null && now >= row.waitAt && !hasStartedBefore(run, row.waitAt))
    return past(deadlineRule, `entered ${(now - row.waitAt).toFixed(2)} ms after waitAt`);
  const stallAt = leaseAt(run);
  if (stallAt !== null && now >= stallAt)
    return past("no handler is entered after its lease", `${(now - stallAt).toFixed(2)} ms late`);
  if (claim.isLostHeard) return past("a claim known to be lost is never entered", `fence ${claim.fence}`);
  if (claim.run) return past("a claim is entered once", `fence ${claim.fence} was entered again`);
  if (job.cancelledAt !== undefined && job.cancelledAt < claim.confirmedAt)
    return past("no handler is entered after a cancel", "the claim was confirmed after the cancel");
  const gap = claim.by.pauses.find(
    (pause) =>
      pause.to - pause.from > NOTICED_GAP &&
      pause.to <= now &&
      pause.to > claim.confirmedAt &&
      !isAnsweredAfter(run, pause),
  );
  if (gap)
    return past(
      "after a gap nothing is entered before a beat",
      `it stood still for ${Math.round(gap.to - gap.from)} ms until ${(now - gap.to).toFixed(1)} ms ago, and was last confirmed ${(now - claim.confirmedAt).toFixed(1)} ms ago`,
    );
  const isMarked = job.row.fence === claim.fence && job.row.startedAt !== null;
  const isStillHeld = job.row.fence === claim.fence && job.row.state === "active";
  if (isMarkedFirst(run) && isStillHeld && !isMarked)
    return past(
      "a start that must be committed first is committed before the entry",
      `expiredClaims ${row.expiredClaims}, onStall ${job.expected.onStall}`,
    );
  if (attempt > job.expected.attempts)
    return past(
      "attempts never over the limit",
      `attempt ${attempt} of ${job.expected.attempts} was entered`,
    );
  // Only the first entry of a job may be unmarked, and with onStall discard none: every other repeat comes from a return.
  const entries = [...job.entries.values()].reduce((sum, count) => sum + count, 0);
  const repeats = entries - job.entries.size;
  if (repeats > job.returns + (job.expected.onStall === "discard" ? 0 : 1))
    return past("attempts never over the limit", `${repeats} attempts were entered again`);
  return undefined;
}

/** A timeout is heard neither before its instant nor before the attempt has really had its time. */
export function signalProblem(run: Run, kind: string): string | undefined {
  const { job, claim, signalledAt, enteredAt, deadline } = run;
  if (signalledAt === undefined || job.isExtended || (kind !== "execution" && kind !== "total"))
    return undefined;
  const { attempt } = job.expected;
  if (deadline !== null && signalledAt < deadline)
    return `heard ${(deadline - signalledAt).toFixed(2)} ms early`;
  const missing = attempt == null ? 0 : enteredAt + attempt - signalledAt;
  if (kind === "execution" && missing > ROUNDING && !claim.by.mayLag(enteredAt))
    return `heard its timeout after ${(signalledAt - enteredAt).toFixed(1)} ms of ${attempt} ms`;
  return undefined;
}

/** Whether a signal that was due has not come, although the process could have given it. */
export function lateSignal(run: Run, now: number): string | undefined {
  const { job, claim, deadline, signalledAt, isListening } = run;
  if (!isListening || deadline === null || job.isExtended || claim.settledAt !== undefined) return undefined;
  if (claim.by.mayLag(run.enteredAt)) return undefined;
  // The deadline was laid out by the engine's own clock; the attempt's true time is what it must not exceed.
  const { attempt } = job.expected;
  const dueAt =
    attempt == null
      ? deadline
      : Math.max(deadline, Math.min(run.enteredAt + attempt, claim.row.totalAt ?? Number.POSITIVE_INFINITY));
  const heardAt = signalledAt ?? now;
  const late = heardAt - dueAt - claim.by.pausedWithin(dueAt - SIGNAL_SLACK, heardAt);
  // The engine's clock lags by at most what its last reading took: then it is late, as it must be, and never early.
  return late > SIGNAL_SLACK + claim.by.clockDoubt
    ? `the soft signal was ${late.toFixed(1)} ms late`
    : undefined;
}

/** Where a verdict came from elsewhere, the next beat must bring it; after trouble with the store the loops take breath. */
const TOLD_WITHIN = 1_500;
const CALM_AFTER = 8_000;

/** A handler that goes on after its verdict works for nothing: it must be told so (SEMANTICS 3.2, 5.1). */
export function untoldVerdict(run: Run, now: number, troubledAt: number): string | undefined {
  const { claim, signalledAt, isListening } = run;
  const { settledAt, by } = claim;
  if (!isListening || settledAt === undefined || signalledAt !== undefined || by.isClosed) return undefined;
  const limit = Math.max(settledAt + TOLD_WITHIN, troubledAt + CALM_AFTER);
  const late = now - limit - by.pausedWithin(settledAt - TOLD_WITHIN, now);
  return late > 0
    ? `the verdict fell ${Math.round(now - settledAt)} ms ago, and the handler has not heard of it`
    : undefined;
}
