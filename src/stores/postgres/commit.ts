import type { NewEvent } from "../../core/event/new-event.ts";
import { UUID } from "../../core/ids.ts";
import type { JobId } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, JobWrite, Outcome, RecordKey, Unit } from "../../ports/store.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { textOfUnit } from "../sql/batches.ts";
import { idArray } from "./array-literal.ts";
import { commitSteps, leadingSteps } from "./commit-steps.ts";
import { type ConnectionGroup, STATEMENT, withRepeats } from "./connection.ts";
import { addEvents, type CommitScope, type Follower, follow, isFollower } from "./followers.ts";
import { HintBatch } from "./hints.ts";
import type { Runner, Session } from "./session.ts";
import { CREATE_RECORD, DELETE_RECORD, HOLD_RECORD, LOCATE, PUT_RECORD } from "./statements.ts";
import { areOneShape, locatedJob, OK, writeJobs } from "./write-jobs.ts";
import { cancelTimeouts, holdIdle, holdTimeout, insertTimeouts, removeTimeouts } from "./write-timeouts.ts";

export function groupScope(connections: ConnectionGroup): CommitScope {
  return {
    run: (statement, values) => withRepeats(() => connections.run(statement, values), REPEATABLE_WRITES),
    atomically: (work) => withRepeats(() => connections.transaction(work), REPEATABLE_WRITES),
  };
}

/** Also repeats unique violations: a revived job may race with an enqueue of its unique key. */
const REPEATABLE_WRITES: ReadonlySet<string> = new Set(["40001", "40P01", "23505"]);

/** In a caller's transaction, a failed unit is rolled back to its savepoint, and the caller's work stays. */
export function transactionScope(session: Session): CommitScope {
  return {
    run: (statement, values) => session.run(statement, values),
    async atomically(work) {
      await session.execute("savepoint curfew");
      try {
        const result = await work(session);
        await session.execute("release savepoint curfew");
        return result;
      } catch (error) {
        await session.execute("rollback to savepoint curfew");
        throw error;
      }
    },
  };
}

/**
 * Commits units in order. Each sees what those before it wrote. Adjacent units that cannot see each other are written
 * together. Hints are only collected: they are sent after the commit.
 */
export async function writeUnits(
  scope: CommitScope,
  units: readonly Unit[],
  now: Instant,
  hints: HintBatch,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let start = 0; start < units.length; ) {
    const set = leadingSet(units, start);
    const steps = set.length > 0 ? [] : leadingSteps(units, start);
    if (set.length > 0) outcomes.push(...(await commitSet(scope, set, now, hints)));
    else if (steps.length > 1) outcomes.push(...(await commitSteps(scope, steps, now, hints)));
    else outcomes.push(await commitComposed(scope, units[start] as Unit, now, hints));
    start += Math.max(set.length, steps.length, 1);
  }
  return outcomes;
}

/** A write to one job without guards, whose effects need no answer. */
interface SetUnit {
  readonly job: JobWrite;
  readonly effects?: readonly Follower[];
}

function isSetUnit(unit: Unit): unit is SetUnit {
  if (!unit.job || unit.when?.length || !UUID.test(unit.job.id)) return false;
  return unit.effects?.every(isFollower) ?? true;
}

/**
 * The longest run of units from `start` that can be written as one set: no job is written twice, or both counted down
 * and written, and all fits into a statement.
 */
function leadingSet(units: readonly Unit[], start: number): SetUnit[] {
  const set: SetUnit[] = [];
  let text = 0;
  const written = new Set<JobId>();
  const counted = new Set<JobId>();
  for (let index = start; index < units.length; index++) {
    const unit = units[index] as Unit;
    if (!isSetUnit(unit) || written.has(unit.job.id) || counted.has(unit.job.id)) break;
    text += textOfUnit(unit);
    if (text > STATEMENT.text && set.length > 0) break;
    written.add(unit.job.id);
    const targets = unit.effects ? countedIn(unit.effects) : NO_JOBS;
    if (targets.some((id) => written.has(id))) break;
    for (const id of targets) counted.add(id);
    set.push(unit);
  }
  return set;
}

const NO_JOBS: readonly JobId[] = [];

function countedIn(effects: readonly Follower[]): readonly JobId[] {
  return effects.flatMap((effect) => ("countdown" in effect ? [effect.countdown] : []));
}

async function commitSet(
  scope: CommitScope,
  set: readonly SetUnit[],
  now: Instant,
  hints: HintBatch,
): Promise<Outcome[]> {
  const writes = set.map(({ job }) => job);
  if (set.every(({ effects }) => !effects?.length)) return writeJobs(scope, writes, hints);
  if (set.every(({ effects }) => effects?.every(isEvent) ?? true) && areOneShape(writes))
    return writeJobs(scope, writes, hints, { now, events: eventsOf(set) });
  const { outcomes, sent } = await scope.atomically(async (session) => {
    const batch = new HintBatch();
    const events: NewEvent[] = [];
    const answers = await writeJobs(session, writes, batch);
    const effects = set.flatMap(({ effects }, index) => (answers[index]?.ok ? (effects ?? []) : []));
    await follow(session, effects, now, batch, events);
    await addEvents(session, events, now);
    return { outcomes: answers, sent: batch };
  });
  hints.merge(sent);
  return outcomes;
}

function isEvent(effect: Effect): effect is NewEvent {
  return "event" in effect;
}

function eventsOf(set: readonly SetUnit[]): ReadonlyMap<JobId, readonly NewEvent[]> {
  return new Map(set.map(({ job, effects }) => [job.id, effects?.filter(isEvent) ?? []]));
}

/** Thrown to roll back a transaction of a refused unit. */
class Refused {
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    this.outcome = outcome;
  }
}

const GONE: Outcome = { ok: false, because: "gone", at: null };
const CONFLICT: Extract<Outcome, { ok: false }> = { ok: false, because: "conflict", at: null };
const LAPSED: Extract<Outcome, { ok: false }> = { ok: false, because: "lapsed", at: null };

/** A unit with guards on records, or with effects that are not followers, in its own transaction. */
async function commitComposed(
  scope: CommitScope,
  unit: Unit,
  now: Instant,
  hints: HintBatch,
): Promise<Outcome> {
  try {
    const { sent, revoked } = await scope.atomically(async (session) => {
      const batch = new HintBatch();
      if (unit.job && !UUID.test(unit.job.id)) throw new Refused(GONE);
      if (unit.job) {
        const [outcome] = await writeJobs(session, [unit.job], batch);
        if (!outcome?.ok) throw new Refused(outcome as Outcome);
      }
      const mustNotExist = await checkGuards(session, unit, now);
      const removed: Revoked[] = [];
      const events: NewEvent[] = [];
      for (const effect of runsOf(unit.effects ?? [])) {
        if (Array.isArray(effect)) await follow(session, effect, now, batch, events);
        else if ("revoke" in effect) removed.push(await cancelTimeouts(session, effect.revoke, now));
        else await apply(session, effect, now, batch, mustNotExist);
      }
      await addEvents(session, events, now);
      return { sent: batch, revoked: removed };
    });
    hints.merge(sent);
    return revoked.length === 0 ? OK : { ok: true, revoked };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.outcome === CONFLICT || error.outcome === LAPSED
      ? refusedAt(scope, unit, error.outcome)
      : error.outcome;
  }
}

/** The outcome of a failed guard. The job was not written, so its position is read again. */
async function refusedAt(
  scope: CommitScope,
  unit: Unit,
  outcome: Extract<Outcome, { ok: false }>,
): Promise<Outcome> {
  const [row] = unit.job ? await scope.run(LOCATE, [idArray([unit.job.id])]) : [];
  return { ...outcome, at: row ? locatedJob(row).at : null };
}

/**
 * Locks the guarded records and timeouts until the end of the transaction. A record that must not exist cannot be
 * locked. The keys of those are returned, so that a `put` of one creates it or fails.
 */
async function checkGuards(session: Runner, unit: Unit, now: Instant): Promise<ReadonlySet<string>> {
  const mustNotExist = new Set<string>();
  for (const guard of unit.when ?? []) {
    if ("timeout" in guard) {
      if (!(await holdTimeout(session, guard.timeout, guard.owner, now))) throw new Refused(LAPSED);
      continue;
    }
    if ("idle" in guard) {
      if (!(await holdIdle(session, guard))) throw new Refused(LAPSED);
      continue;
    }
    const { record, version } = guard;
    const [row] = await session.run(HOLD_RECORD, [...record]);
    if ((row?.[0] ?? 0) !== version) throw new Refused(CONFLICT);
    if (version === 0) mustNotExist.add(textOf(record));
  }
  return mustNotExist;
}

/** Effects in order, with adjacent ones of the same follower kind grouped. */
function runsOf(effects: readonly Effect[]): (Exclude<Effect, Follower> | Follower[])[] {
  const runs: (Exclude<Effect, Follower> | Follower[])[] = [];
  let kind: string | undefined;
  for (const effect of effects) {
    if (!isFollower(effect)) {
      runs.push(effect);
      kind = undefined;
      continue;
    }
    const [name] = Object.keys(effect);
    if (name === kind) (runs[runs.length - 1] as Follower[]).push(effect);
    else runs.push([effect]);
    kind = name;
  }
  return runs;
}

function textOf(key: RecordKey): string {
  return JSON.stringify(key);
}

async function apply(
  session: Runner,
  effect: Exclude<Effect, { revoke: unknown } | Follower>,
  now: Instant,
  hints: HintBatch,
  mustNotExist: ReadonlySet<string>,
): Promise<void> {
  if ("delete" in effect) await session.run(DELETE_RECORD, [...effect.delete]);
  else if ("request" in effect) await insertTimeouts(session, [effect.request], now, hints);
  else if ("remove" in effect) await removeTimeouts(session, [{ id: effect.remove }], now);
  else {
    const values = [...effect.put, effect.wakeAt, JSON.stringify(effect.body)];
    const isNew = mustNotExist.has(textOf(effect.put));
    const rows = await session.run(isNew ? CREATE_RECORD : PUT_RECORD, values);
    if (isNew && rows.length === 0) throw new Refused(CONFLICT);
  }
}
