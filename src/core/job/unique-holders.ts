import { CurfewError, refuse } from "../errors.ts";
import type { Json } from "../schema.ts";
import { formatDuration, type Instant } from "../time.ts";
import { waitingImage } from "./decision.ts";
import type { NewJob } from "./envelope.ts";
import { dueAtOf, type JobId, type JobRow, type JobState } from "./job.ts";
import { isTerminal } from "./lifecycle.ts";
import { newRow } from "./new-row.ts";
import { replaces, type UniqueRule } from "./unique-key.ts";

/** A job that was enqueued under a unique key, as the record of the key remembers it. */
export interface UniqueHolder {
  readonly id: JobId;
  readonly at: Instant;
  /** The end of its period; null where it blocks by its states alone. */
  readonly until: Instant | null;
  /** Whether its rule counts finished jobs: then it is remembered as long as the job is kept. */
  readonly countsEnded: boolean;
}

/** A job and the rule it is enqueued under; its key is `job.uniqueKey`. */
export interface UniqueJob {
  readonly job: NewJob;
  readonly rule: UniqueRule;
}

type Answer = "created" | "exists" | { readonly duplicate: JobId } | CurfewError;

/** What is to be written for the jobs of one key, and how each of them is answered once that is done. */
interface KeeperPlan {
  /** For the first so many of the jobs: the others must wait until what was planned is stored. */
  readonly answers: readonly Answer[];
  readonly created: readonly NewJob[];
  /** The job that is cancelled for a new one. */
  readonly replaced: JobRow | null;
  readonly keepers: readonly UniqueHolder[];
}

/** More jobs of one key than that are not told apart: the oldest are forgotten. */
const MOST_KEEPERS = 100;
const FIRST_LOOK = 3_600_000;
const LATEST_LOOK = 7 * 86_400_000;

export function holdersIn(body: Json): UniqueHolder[] {
  return (body as { keepers: [JobId, Instant, Instant | null, boolean][] }).keepers.map(
    ([id, at, until, countsEnded]) => ({ id, at, until, countsEnded }),
  );
}

/** The record of a key: its body, and when to look whether it is still needed. */
export function keeperRecord(
  keepers: readonly UniqueHolder[],
  now: Instant,
): { body: Json; wakeAt: Instant } {
  const body = { keepers: keepers.map(({ id, at, until, countsEnded }) => [id, at, until, countsEnded]) };
  const looks = keepers.map(({ at, until }) => {
    // Who lives long is looked at ever less often, so that a million jobs of next month cost nothing today.
    return until ?? now + Math.min(Math.max(now - at, FIRST_LOOK), LATEST_LOOK);
  });
  return { body, wakeAt: Math.max(...looks) };
}

/** The keepers that may still block somebody. */
export function keepersLeft(
  keepers: readonly UniqueHolder[],
  rowOf: (id: JobId) => JobRow | null,
  now: Instant,
): UniqueHolder[] {
  return keepers.filter(({ id, until, countsEnded }) => {
    if (until !== null) return until > now;
    const row = rowOf(id);
    return row !== null && (countsEnded || !isTerminal(row.state));
  });
}

/** Decides on jobs of one key in their order, each in the sight of those before it. */
export function planKeepers(
  known: readonly UniqueHolder[],
  rowOf: (id: JobId) => JobRow | null,
  jobs: readonly UniqueJob[],
  now: Instant,
): KeeperPlan {
  const keepers = keepersLeft(known, rowOf, now);
  const created: NewJob[] = [];
  const answers: Answer[] = [];
  let replaced: JobRow | null = null;
  const stateOf = (id: JobId): JobState | null =>
    created.find((job) => job.id === id)?.image.state ?? rowOf(id)?.state ?? null;
  for (const { job, rule } of jobs) {
    // A call whose answer was lost comes again, and finds itself there.
    if (known.some(({ id }) => id === job.id)) answers.push(job.hasNewId ? "created" : "exists");
    else if (!job.hasNewId && stateOf(job.id) !== null) answers.push("exists");
    else {
      const rival = keepers.findLast((keeper) => blocks(keeper, stateOf(keeper.id), rule, now));
      if (rival && !replaces(rule)) {
        answers.push({ duplicate: rival.id });
        continue;
      }
      const row = rival ? rowOf(rival.id) : null;
      if (rival && (replaced || created.length > 0)) break;
      const isLive = row !== null && !isTerminal(row.state);
      const made = isLive ? inPlaceOf(row, job, rule, now) : job;
      if (made instanceof CurfewError) {
        answers.push(made);
        continue;
      }
      if (isLive) replaced = row;
      created.push(made);
      keepers.push(keeperOf(job, rule));
      answers.push("created");
    }
  }
  return { answers, created, replaced, keepers: keepers.slice(-MOST_KEEPERS) };
}

function keeperOf({ id, createdAt: at }: NewJob, { period, states }: UniqueRule): UniqueHolder {
  return { id, at, until: period === null ? null : at + period, countsEnded: states.some(isTerminal) };
}

/** A job that is gone within its period has ended and was not kept: it counts as one that did its work. */
function blocks(keeper: UniqueHolder, state: JobState | null, rule: UniqueRule, now: Instant): boolean {
  if (rule.period !== null && keeper.at + rule.period <= now) return false;
  if (state === null) return keeper.until !== null && rule.states.includes("completed");
  return rule.states.includes(state);
}

/** The new job as it takes the place of the old one, which may hand on the time at which it was to start. */
export function inPlaceOf(
  old: JobRow,
  job: NewJob,
  { onConflict }: UniqueRule,
  now: Instant,
): NewJob | CurfewError {
  if (onConflict !== "replace-except-schedule") return job;
  const dueAt = old.state === "scheduled" ? Math.max(dueAtOf(old.rank), now) : now;
  const state = dueAt > now ? "scheduled" : job.options?.limit ? "pending" : "available";
  const waiting = waitingImage(newRow(job), state, { dueAt });
  // Whoever keeps the limit of its limit looks at it at once.
  const image = state === "pending" ? { ...waiting, wakeAt: now } : waiting;
  const endsAt = Math.min(
    image.waitAt ?? Number.POSITIVE_INFINITY,
    image.totalAt ?? Number.POSITIVE_INFINITY,
  );
  if (endsAt > dueAt) return { ...job, image };
  const fix = `job ${old.id}, which it replaces, was to start ${formatDuration(dueAt - now)} from now, after its end`;
  return refuse("never_runs", "options.unique.onConflict", onConflict, fix);
}
