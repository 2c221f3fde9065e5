import { type CurfewError, refuse } from "../../errors.ts";
import { formatDuration, type Instant } from "../../time.ts";
import { dueAtOf, type JobId, type JobRow, type Pace } from "../job.ts";
import type { NewJob } from "./envelope.ts";
import {
  type HolderAnswer,
  type HolderPlan,
  startingAt,
  type UniqueHolder,
  type UniqueJob,
} from "./unique-holders.ts";

type PacedHolder = UniqueHolder & Required<Pick<UniqueHolder, "paced">>;

/** What is known about the jobs of a key: the one that waits, and the last one that was due. */
interface Known {
  readonly waiting: { readonly row: JobRow; readonly since: Instant } | null;
  readonly last: PacedHolder | null;
}

/**
 * Decides on jobs of one key that are debounced or throttled (SEMANTICS 4.8). Of those that come together only the last
 * one is stored: it stands for the others.
 */
export function planPaced(
  known: readonly UniqueHolder[],
  rowOf: (id: JobId) => JobRow | null,
  jobs: readonly UniqueJob[],
  { now, anchor }: { readonly now: Instant; readonly anchor: Instant },
): HolderPlan {
  // A call whose reply was lost is repeated and finds its own job, which stands for those before it.
  const stored = jobs.findLastIndex(
    ({ job }) => known.some(({ id }) => id === job.id) || rowOf(job.id) !== null,
  );
  const answers: HolderAnswer[] = jobs
    .slice(0, stored + 1)
    .map(({ job }, index) =>
      index < stored ? standsFor(jobs[stored] as UniqueJob) : job.hasNewId ? "created" : "exists",
    );
  const left = jobs.slice(stored + 1);
  const last = left.at(-1);
  const kept = known.filter(({ until }) => until === null || until > now);
  if (!last) return { answers, created: [], replaced: null, holders: kept };
  const pace = last.rule.pace as Pace;
  const { waiting, last: before } = knownOf(kept, rowOf, now);
  const since = waiting?.since ?? now;
  const dueAt = dueAtBy(pace, { waiting, last: before }, since, { now, anchor });
  const made = startingAt(withPace(last.job, pace), dueAt, now);
  if (!made)
    return {
      answers: [...answers, ...left.map(() => neverRuns(pace, dueAt - now))],
      created: [],
      replaced: null,
      holders: kept,
    };
  const until = pace.kind === "throttle" ? dueAt + pace.period : dueAt;
  const holder = { id: made.id, at: made.createdAt, until, countsEnded: false, paced: { since, dueAt } };
  const others = kept.filter(({ paced }) => !paced);
  return {
    answers: [...answers, ...left.map((one) => (one === last ? "created" : standsFor(last)))],
    created: [made],
    replaced: waiting?.row ?? null,
    // Two are enough: the one that was due last, and the one that waits.
    holders: [...others, ...(before ? [before] : []), holder],
  };
}

function standsFor({ job }: UniqueJob): HolderAnswer {
  return { duplicate: job.id };
}

/** A job that was claimed, put off by its handler or is due by now has begun: the next enqueue is a new one. */
function knownOf(holders: readonly UniqueHolder[], rowOf: (id: JobId) => JobRow | null, now: Instant): Known {
  let waiting: Known["waiting"] = null;
  let last: Known["last"] = null;
  for (const holder of holders) {
    const { id, paced } = holder;
    if (!paced) continue;
    const row = rowOf(id);
    const isWaiting = row?.state === "scheduled" && row.claimedAt === null && dueAtOf(row.rank) > now;
    if (isWaiting) {
      waiting = { row, since: paced.since };
      continue;
    }
    // One that was cancelled or deleted before it was due never was. Otherwise an operator has made it due earlier.
    if (paced.dueAt > now && (row === null || row.state === "cancelled")) continue;
    // It is not before its rank: the clock of the process that stored it may be ahead of this one.
    const dueAt = row ? Math.min(paced.dueAt, Math.max(now, dueAtOf(row.rank))) : Math.min(paced.dueAt, now);
    if (last === null || dueAt >= last.paced.dueAt) last = { ...holder, paced: { ...paced, dueAt } };
  }
  return { waiting, last };
}

function dueAtBy(
  pace: Pace,
  { waiting, last }: Known,
  since: Instant,
  { now, anchor }: { readonly now: Instant; readonly anchor: Instant },
): Instant {
  if (pace.kind === "debounce") {
    const quietAt = anchor + pace.quiet;
    return pace.most === null ? quietAt : Math.max(now, Math.min(quietAt, since + pace.most));
  }
  if (waiting) return dueAtOf(waiting.row.rank);
  return last === null ? now : Math.max(now, last.paced.dueAt + pace.period);
}

/** So that `why` can say what the job waits for. */
function withPace(job: NewJob, pace: Pace): NewJob {
  return { ...job, options: { ...job.options, pace } };
}

function neverRuns(pace: Pace, delay: number): CurfewError {
  const fix = `it starts ${formatDuration(delay)} from now, after its timeouts end: lengthen them`;
  return refuse("never_runs", `options.unique.${pace.kind}`, pace, fix);
}
