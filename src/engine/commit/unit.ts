import type { NewEvent } from "../../core/event/new-event.ts";
import { applied } from "../../core/job/decide/decide.ts";
import type { Decision, LifecycleEvent } from "../../core/job/decide/decision.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Guard, JobWrite, Unit } from "../../ports/store.ts";
import type { AttemptTrace } from "../../ports/trace.ts";
import type { EngineContext } from "../context.ts";

export type Decided = Extract<Decision, { ok: true }>;

/** A decision on one job and everything that is committed and announced with it. */
export interface DecidedJob {
  /** The row as it was read. */
  readonly row: JobRow;
  readonly decision: Decided;
  /** When it was decided. */
  readonly at: Instant;
  /** An outsider's decision is valid only for the revision that was read; see `unitOf` for a holder's. */
  readonly by: "holder" | "outsider";
  /** Written with the decision's own documents, which win. */
  readonly documents?: JobDocuments | undefined;
  readonly effects?: readonly Effect[] | undefined;
  readonly when?: readonly Guard[] | undefined;
  /** Notifies the holder although its fence stays valid. */
  readonly notifyHolder?: boolean;
  /** Start events of the attempt that no commit has recorded yet. */
  readonly start?: readonly LifecycleEvent[] | undefined;
  /** The open span, if this process runs the attempt. */
  readonly trace?: AttemptTrace | undefined;
  /** The deadline that fired, for the lateness histogram. */
  readonly deadline?: Instant | null;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** One settle admits at most this many jobs. The next settle or the sweep admits the rest. */
export const ADMITTED_AT_ONCE = 200;

/**
 * An outsider increases the revision by more than one, by a number that changes every millisecond: see `step` of the
 * store port. A holder increases it by one, because it must know the revision that its own write gives.
 */
const STEPS = 65_536;

/**
 * The unit that commits a decision, with the recorded events. A holder's plain success names no revision, because no
 * outsider's change to a running job makes it wrong. Every job passes here, so the code avoids object spreads: one costs
 * more than the rest of this function.
 */
export function unitOf({ recorder }: Pick<EngineContext, "recorder">, job: DecidedJob): Unit {
  const { row, decision } = job;
  const { image, documents, fence, drop } = decision;
  const write: Mutable<JobWrite> = { id: row.id, fence: row.fence, image };
  if (job.by === "outsider" || image.state !== "completed" || drop !== undefined) write.rev = row.rev;
  if (job.by === "outsider") write.step = 2 + (job.at % STEPS);
  if (job.documents) write.documents = documents ? { ...job.documents, ...documents } : job.documents;
  else if (documents) write.documents = documents;
  if (fence !== undefined) write.nextFence = fence;
  if (job.notifyHolder) write.notifyHolder = true;
  if (drop) write.drop = drop;
  const unit: Mutable<Unit> = { job: write };
  const recorded = recorder.isOn
    ? recorder.recorded(announcedRow(row, decision), decision, job.at, job.start)
    : undefined;
  const logged = image.state === "completed" ? undefined : timeoutLines(row, decision, job.at);
  // The handler wrote its own lines before the verdict.
  const effects = joined(recorded, joined(job.effects, joined(logged, effectsOf(row, decision))));
  if (effects) unit.effects = effects;
  if (job.when) unit.when = job.when;
  return unit;
}

/** The unit that deletes a job as it was read. */
export function removalOf({ id, fence, rev }: JobRow, effects?: readonly Effect[]): Unit {
  const job = { id, fence, rev, drop: true } as const;
  return effects ? { job, effects } : { job };
}

/** The row for the events of a decision: a start has the number of the new attempt, other events that of the old one. */
export function announcedRow(row: JobRow, decision: Decided): JobRow {
  const { image } = decision;
  return image.state === "active" && image.startedAt !== row.startedAt ? applied(row, decision) : row;
}

const TIMEOUTS: ReadonlySet<string> = new Set([
  "job.timeout",
  "job.total_timeout",
  "job.stalled",
  "job.ttl_expired",
]);

/** The lines in the job's log that say which limit ended the attempt or the job (SEMANTICS 3.9). */
function timeoutLines(
  { id, attempt }: JobRow,
  { events, drop }: Decided,
  at: Instant,
): readonly Effect[] | undefined {
  if (drop || !events.some(({ name }) => TIMEOUTS.has(name))) return undefined;
  return events.flatMap(({ name, error }) =>
    error && TIMEOUTS.has(name) ? [{ log: { at, attempt, message: error.message }, job: id }] : [],
  );
}

function joined(
  first: readonly Effect[] | readonly NewEvent[] | undefined,
  second: readonly Effect[] | undefined,
): readonly Effect[] | undefined {
  if (first === undefined || first.length === 0) return second?.length ? second : undefined;
  return second === undefined || second.length === 0 ? first : [...first, ...second];
}

/** Effects that follow from a decision; undefined for a job without workflow and limit. */
function effectsOf(row: JobRow, decision: Decided): readonly Effect[] | undefined {
  if (row.workflow === null && row.limitKey === null) return undefined;
  const countdowns = countdownEffects(row, decision);
  return row.limitKey === null ? countdowns : joined(countdowns, limitEffects(row, decision.image));
}

/** When a step ends, every step that depends on it has one dependency less. */
function countdownEffects(row: JobRow, decision: Decided): readonly Effect[] | undefined {
  return endsStep(row, decision) ? row.options?.step?.wakes.map((countdown) => ({ countdown })) : undefined;
}

/** Whether a decision ends a step of a workflow. Other steps may be due after its commit. */
export function endsStep({ options, state }: JobRow, { image }: Decided): boolean {
  return options !== null && options.step !== undefined && isTerminal(image.state) && !isTerminal(state);
}

/**
 * Stores a start that counts against a rate. A job that frees a slot of its limit, or comes to its limit, admits the next
 * jobs in the same commit, so a crash cannot lose the slot.
 */
function limitEffects(
  row: JobRow,
  image: Pick<JobRow, "state" | "startedAt">,
): readonly Effect[] | undefined {
  const limitKey = row.limitKey as string;
  const limit = row.options?.limit;
  const effects: Effect[] = [];
  // The job frees a slot of its queue: another job can be claimed.
  if (row.state === "active" && image.state !== "active") effects.push({ ready: row.queue });
  if (limit) {
    const startedAt = row.startedAt ?? (image.state === "active" ? image.startedAt : null);
    const isStartOrEnd = row.startedAt === null || image.state !== "active";
    if (startedAt !== null && row.state === "active" && isStartOrEnd)
      effects.push({ spend: limitKey, by: `${row.id} ${row.fence}`, at: startedAt, limit });
    const isFreed = holdsSlot(row, row.state) && !holdsSlot(row, image.state);
    // The job that leaves may be the only one that the sweep looks at, so admit others now.
    if (isFreed || image.state === "pending" || row.state === "pending") effects.push(admission(row));
  }
  return effects;
}

/** Whether a job in this state holds a slot of its limit. */
function holdsSlot({ options }: JobRow, state: JobRow["state"]): boolean {
  if (state === "retryable") return options?.limit?.strict === true;
  return state === "available" || state === "active";
}

/** Admits the jobs for which the limit of this job has room. */
export function admission({ limitKey, options }: Pick<JobRow, "limitKey" | "options">): Effect {
  return { admit: limitKey as string, count: ADMITTED_AT_ONCE, limit: options?.limit ?? {} };
}

/** When a committed start no longer counts against its rate limit; null without a rate. */
export function startOverAt({ limitKey, options, startedAt }: JobRow): Instant | null {
  if (limitKey === null || startedAt === null) return null;
  const rate = options?.limit?.rate;
  return rate ? startedAt + rate.per : null;
}
