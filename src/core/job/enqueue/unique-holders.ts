import { CurfewError, refuse } from "../../errors.ts";
import type { Json } from "../../schema.ts";
import { formatDuration, type Instant } from "../../time.ts";
import { waitingImage } from "../decide/decision.ts";
import { dueAtOf, type JobId, type JobRow, type JobState } from "../job.ts";
import { isTerminal } from "../lifecycle.ts";
import type { NewJob } from "./envelope.ts";
import { newRow } from "./new-row.ts";
import { replaces, type UniqueRule } from "./unique-key.ts";

/** A job that was enqueued under a unique key, as the record of the key has it. */
export interface UniqueHolder {
  readonly id: JobId;
  readonly at: Instant;
  /** The end of its period; null if only its states block others. */
  readonly until: Instant | null;
  /** Whether its rule counts finished jobs. Then it is remembered while the job is kept. */
  readonly countsEnded: boolean;
  /** Of a job with debounce or throttle: when the enqueues that it stands for began, and when it is due. */
  readonly paced?: { readonly since: Instant; readonly dueAt: Instant };
}

/** A job and the rule it is enqueued under. Its key is `job.uniqueKey`. */
export interface UniqueJob {
  readonly job: NewJob;
  readonly rule: UniqueRule;
}

export type HolderAnswer = "created" | "exists" | { readonly duplicate: JobId } | CurfewError;

/** What to write for the jobs of one key, and the answer for each of them once that is written. */
export interface HolderPlan {
  /** One answer for each of the first jobs. The others must wait until this plan is stored. */
  readonly answers: readonly HolderAnswer[];
  readonly created: readonly NewJob[];
  /** The job that is cancelled for a new one. */
  readonly replaced: JobRow | null;
  readonly holders: readonly UniqueHolder[];
}

/** The most jobs that the record of a key names. The oldest are forgotten. */
const MOST_HOLDERS = 100;
const FIRST_LOOK = 3_600_000;
const LATEST_LOOK = 7 * 86_400_000;

export function holdersIn(body: Json): UniqueHolder[] {
  type Stored = [JobId, Instant, Instant | null, boolean, Instant?, Instant?];
  return (body as { holders: Stored[] }).holders.map(([id, at, until, countsEnded, since, dueAt]) => ({
    id,
    at,
    until,
    countsEnded,
    ...(since !== undefined && dueAt !== undefined && { paced: { since, dueAt } }),
  }));
}

/** The record of a key: its body, and when to check whether it is still needed. */
export function holderRecord(
  holders: readonly UniqueHolder[],
  now: Instant,
): { body: Json; wakeAt: Instant } {
  const body = {
    holders: holders.map(({ id, at, until, countsEnded, paced }) =>
      paced ? [id, at, until, countsEnded, paced.since, paced.dueAt] : [id, at, until, countsEnded],
    ),
  };
  const looks = holders.map(({ at, until }) => {
    // The longer a job lives, the later the next check, at most a week. A million jobs of next month cost nothing
    // today.
    return until ?? now + Math.min(Math.max(now - at, FIRST_LOOK), LATEST_LOOK);
  });
  return { body, wakeAt: Math.max(...looks) };
}

/** The holders that may still block another job. */
export function holdersLeft(
  holders: readonly UniqueHolder[],
  rowOf: (id: JobId) => JobRow | null,
  now: Instant,
): UniqueHolder[] {
  return holders.filter(({ id, until, countsEnded }) => {
    if (until !== null) return until > now;
    const row = rowOf(id);
    return row !== null && (countsEnded || !isTerminal(row.state));
  });
}

/** Decides on jobs of one key in order. Each sees those before it. */
export function planHolders(
  known: readonly UniqueHolder[],
  rowOf: (id: JobId) => JobRow | null,
  jobs: readonly UniqueJob[],
  now: Instant,
): HolderPlan {
  const holders = holdersLeft(known, rowOf, now);
  const created: NewJob[] = [];
  const answers: HolderAnswer[] = [];
  let replaced: JobRow | null = null;
  const stateOf = (id: JobId): JobState | null =>
    created.find((job) => job.id === id)?.image.state ?? rowOf(id)?.state ?? null;
  for (const { job, rule } of jobs) {
    // A call whose reply was lost is repeated and finds its own job.
    if (known.some(({ id }) => id === job.id)) answers.push(job.hasNewId ? "created" : "exists");
    else if (!job.hasNewId && stateOf(job.id) !== null) answers.push("exists");
    else {
      const blocker = holders.findLast((holder) => blocks(holder, stateOf(holder.id), rule, now));
      if (blocker && !replaces(rule)) {
        answers.push({ duplicate: blocker.id });
        continue;
      }
      const row = blocker ? rowOf(blocker.id) : null;
      if (blocker && (replaced || created.length > 0)) break;
      const isLive = row !== null && !isTerminal(row.state);
      const made = isLive ? inPlaceOf(row, job, rule, now) : job;
      if (made instanceof CurfewError) {
        answers.push(made);
        continue;
      }
      if (isLive) replaced = row;
      created.push(made);
      holders.push(holderOf(job, rule));
      answers.push("created");
    }
  }
  return { answers, created, replaced, holders: holders.slice(-MOST_HOLDERS) };
}

function holderOf({ id, createdAt: at }: NewJob, { period, states }: UniqueRule): UniqueHolder {
  return { id, at, until: period === null ? null : at + period, countsEnded: states.some(isTerminal) };
}

/** A deleted job within its period has ended and was not kept. It counts as completed. */
function blocks(holder: UniqueHolder, state: JobState | null, rule: UniqueRule, now: Instant): boolean {
  if (rule.period !== null && holder.at + rule.period <= now) return false;
  if (state === null) return holder.until !== null && rule.states.includes("completed");
  return rule.states.includes(state);
}

/** The new job that replaces an old one. It may take over the old one's start time. */
export function inPlaceOf(
  old: JobRow,
  job: NewJob,
  { onConflict }: UniqueRule,
  now: Instant,
): NewJob | CurfewError {
  if (onConflict !== "replace-except-schedule") return job;
  const dueAt = old.state === "scheduled" ? Math.max(dueAtOf(old.rank), now) : now;
  const made = startingAt(job, dueAt, now);
  if (made) return made;
  const fix = `job ${old.id}, which it replaces, starts ${formatDuration(dueAt - now)} from now, after this job's timeouts end: lengthen them`;
  return refuse("never_runs", "options.unique.onConflict", onConflict, fix);
}

/** The job with another start. Undefined if its `wait` or `total` ends by then. */
export function startingAt(job: NewJob, dueAt: Instant, now: Instant): NewJob | undefined {
  const state = dueAt > now ? "scheduled" : job.options?.limit ? "pending" : "available";
  const waiting = waitingImage(newRow(job), state, { dueAt });
  // The sweep asks its limit for admission at once.
  const image = state === "pending" ? { ...waiting, wakeAt: now } : waiting;
  const endsAt = Math.min(
    image.waitAt ?? Number.POSITIVE_INFINITY,
    image.totalAt ?? Number.POSITIVE_INFINITY,
  );
  return endsAt > dueAt ? { ...job, image } : undefined;
}
