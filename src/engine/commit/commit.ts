import { CurfewError } from "../../core/errors.ts";
import { applied } from "../../core/job/decide/decide.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { CommitOptions, Effect, Outcome, Store, Unit } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { announce } from "./announce.ts";
import type { RecordKind } from "./record-kind.ts";
import { type DecidedJob, unitOf } from "./unit.ts";

/** How many times a call reads and decides again, because the job or record changed after it was read. */
export const STALE_TRIES = 20;
/** How many times a call with a waiting caller is tried while the store fails. */
export const STORE_TRIES = 4;

/** Commits units with one try. The only place that calls `store.commit`. */
export async function commitUnits(
  { store, clock }: { readonly store: Pick<Store, "commit">; readonly clock: { now(): Instant } },
  units: readonly Unit[],
  options?: Omit<CommitOptions, "now">,
): Promise<Outcome[]> {
  return units.length === 0 ? [] : store.commit(units, { ...options, now: clock.now() });
}

/** Commits decisions and other units in one call. Announces the decisions that the store accepted. */
export async function commitJobs(
  context: EngineContext,
  jobs: readonly (DecidedJob | Unit)[],
): Promise<Outcome[]> {
  const units = jobs.map((job) => ("decision" in job ? unitOf(context, job) : job));
  const outcomes = await commitUnits(context, units);
  for (const [index, job] of jobs.entries())
    if (outcomes[index]?.ok && "decision" in job) announce(context, job);
  return outcomes;
}

/**
 * Loads a job, decides and commits, and repeats that if the row changed meanwhile. `decideOn` returns null to leave the
 * job as it is. Returns the row after the call, or null if there is none.
 */
export async function commitDecision(
  context: EngineContext,
  call: string,
  id: JobId,
  decideOn: (row: JobRow | null, now: Instant) => DecidedJob | null,
): Promise<JobRow | null> {
  for (let tries = 0; tries < STALE_TRIES; tries++) {
    const [row = null] = await context.store.jobs.load([id]);
    const job = decideOn(row, context.clock.now());
    if (job === null) return row;
    const [outcome] = await commitJobs(context, [job]);
    if (outcome?.ok) return applied(job.row, job.decision);
  }
  throw tooManyChanges(call, `job ${id}`);
}

/** The change of a record, and the effects that are committed with it. */
export interface RecordChange<Body> {
  /** Null deletes the record. */
  readonly body: Body | null;
  /** When the sweep handles the record; left out for never. */
  readonly wakeAt?: Instant | null;
  readonly effects?: readonly Effect[];
}

/**
 * Reads a record and commits a change under the version that was read, and repeats that if the record changed meanwhile.
 * `change` returns null to leave the record as it is. Returns the committed change, or null.
 */
export async function changeRecord<Body>(
  context: Pick<EngineContext, "store" | "clock">,
  call: string,
  kind: RecordKind<Body>,
  name: string,
  change: (body: Body | null, now: Instant) => RecordChange<Body> | null,
): Promise<RecordChange<Body> | null> {
  for (let tries = 0; tries < STALE_TRIES; tries++) {
    const record = await kind.load(context.store, name);
    const changed = change(record?.body ?? null, context.clock.now());
    if (changed === null) return null;
    const { body, wakeAt = null, effects = [] } = changed;
    const write = body === null ? kind.remove(name) : kind.put(name, body, wakeAt);
    const unit = { when: [kind.guard(name, record?.version ?? 0)], effects: [write, ...effects] };
    const [outcome] = await commitUnits(context, [unit]);
    if (outcome?.ok) return changed;
  }
  throw tooManyChanges(call, `${kind.kind} ${JSON.stringify(name)}`);
}

export function tooManyChanges(call: string, what: string): CurfewError {
  return new CurfewError(
    "invalid_state",
    `${call}: ${what} changed ${STALE_TRIES} times during this call; try again`,
  );
}
