import type { JobId } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import {
  type Effect,
  type Guard,
  LOG_LIMIT,
  type Outcome,
  type RecordKey,
  type Unit,
} from "../../ports/store.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { admissionsLast } from "../admissions.ts";
import { BATCH } from "./connection.ts";
import { enqueueJob } from "./enqueue.ts";
import type { HintBatch } from "./hints.ts";
import { admit, spend } from "./key-limits.ts";
import type { Session } from "./session.ts";
import {
  ADD_LOG,
  COUNT_DOWN,
  DELETE_RECORD,
  LOAD_RECORD,
  PUT_RECORD,
  RAISE_FLOOR,
  TRIM_LOG,
} from "./statements.ts";
import { type LocatedJob, type LocatedWrite, locate, writeJobs } from "./write-jobs.ts";
import { cancelTimeouts, insertTimeout, isIdle, lossOf, removeTimeout } from "./write-timeouts.ts";

const OK: Outcome = { ok: true };

/**
 * Commits units in order. Each sees what those before it wrote. Answers for as many of them as one transaction takes,
 * at least one. The caller passes the others again.
 */
export function writeUnits(
  session: Session,
  units: readonly Unit[],
  now: Instant,
  hints: HintBatch,
): Outcome[] {
  const outcomes: Outcome[] = [];
  for (let room = BATCH.text; room > 0 && outcomes.length < units.length; ) {
    const start = outcomes.length;
    const set = units.slice(start, endOfSet(units, start));
    const jobs = locate(
      session,
      set.flatMap(({ job }) => (job ? [job.id] : [])),
    );
    const fitting = set.slice(0, fittingIn(room, set, jobs));
    for (const outcome of commitSet(session, fitting, jobs, now, hints)) outcomes.push(outcome);
    for (const { job } of fitting) room -= (job && jobs.get(job.id)?.text) ?? 0;
  }
  return outcomes;
}

/** How many units fit into the remaining room, at least one. */
function fittingIn(room: number, units: readonly Unit[], jobs: ReadonlyMap<JobId, LocatedJob>): number {
  let text = 0;
  for (const [index, { job }] of units.entries()) {
    text += (job && jobs.get(job.id)?.text) ?? 0;
    if (text > room) return Math.max(index, 1);
  }
  return units.length;
}

/** The end of the run of units from `start` that cannot see each other, so that they can be written as one set. */
function endOfSet(units: readonly Unit[], start: number): number {
  const ids = new Set<JobId>();
  for (let index = start; index < units.length; index++) {
    const unit = units[index] as Unit;
    if (!unit.job || !isOnItsOwn(unit) || ids.has(unit.job.id)) return Math.max(index, start + 1);
    ids.add(unit.job.id);
  }
  return units.length;
}

/** Whether a unit depends only on its job, and writes nothing that another unit can depend on. */
function isOnItsOwn({ when, effects }: Unit): boolean {
  if (when?.length) return false;
  return effects?.every(isAside) ?? true;
}

/** Effects that no guard depends on. Admissions may be applied after other jobs are written. */
function isAside(effect: Effect): boolean {
  return "event" in effect || "log" in effect || "admit" in effect || "spend" in effect || "ready" in effect;
}

/**
 * Checks all guards before it writes anything. Nothing expected fails after that, so each unit is all or nothing
 * without its own transaction.
 */
function commitSet(
  session: Session,
  units: readonly Unit[],
  jobs: ReadonlyMap<JobId, LocatedJob>,
  now: Instant,
  hints: HintBatch,
): Outcome[] {
  const writes: LocatedWrite[] = [];
  const effects: Effect[] = [];
  const revoked: Revoked[] = [];
  const outcomes = units.map((unit): Outcome => {
    const located = unit.job && jobs.get(unit.job.id);
    const because = refusal(session, unit, located, now);
    if (because) {
      const at = located ? { state: located.state, fence: located.fence, rev: located.rev } : null;
      return { ok: false, because, at };
    }
    if (unit.job && located) writes.push({ located, write: unit.job });
    if (unit.effects) effects.push(...unit.effects);
    // A unit that revokes is a set by itself, so everything collected here belongs to it.
    return unit.effects?.some((effect) => "revoke" in effect) ? { ok: true, revoked } : OK;
  });
  writeJobs(session, writes, hints);
  for (const effect of admissionsLast(effects)) {
    if ("revoke" in effect) revoked.push(cancelTimeouts(session, effect.revoke, now));
    else applyEffect(session, effect, now, hints);
  }
  return outcomes;
}

type Refusal = Extract<Outcome, { ok: false }>["because"];

function refusal(
  session: Session,
  { job, when }: Unit,
  located: LocatedJob | undefined,
  now: Instant,
): Refusal | null {
  if (job) {
    if (!located) return "gone";
    if (located.fence !== job.fence) return "lost";
    // An attempt cannot change a job that has ended. Only a write that names a revision can.
    if (job.rev === undefined && isTerminal(located.state)) return "lost";
    if (job.rev !== undefined && located.rev !== job.rev) return "stale";
  }
  for (const guard of when ?? []) {
    const because = guardRefusal(session, guard, now);
    if (because) return because;
  }
  return null;
}

function guardRefusal(session: Session, guard: Guard, now: Instant): Refusal | null {
  if ("timeout" in guard) return lossOf(session, guard.timeout, guard.owner, now) ? "lapsed" : null;
  if ("idle" in guard) return isIdle(session, guard) ? null : "lapsed";
  return (session.get(LOAD_RECORD, guard.record)?.[2] ?? 0) === guard.version ? null : "conflict";
}

function applyEffect(
  session: Session,
  effect: Exclude<Effect, { revoke: unknown }>,
  now: Instant,
  hints: HintBatch,
): void {
  if ("enqueue" in effect) enqueueJob(session, effect.enqueue, hints);
  else if ("countdown" in effect) session.run(COUNT_DOWN, [now, effect.countdown]);
  else if ("put" in effect) putRecord(session, effect.put, effect.body, effect.wakeAt);
  else if ("delete" in effect) deleteRecord(session, effect.delete);
  else if ("request" in effect) insertTimeout(session, effect.request, now, hints);
  else if ("remove" in effect) removeTimeout(session, { id: effect.remove }, now);
  else if ("admit" in effect) admit(session, effect, hints);
  else if ("spend" in effect) spend(session, effect, now);
  else if ("ready" in effect) hints.ready(effect.ready);
  else if ("event" in effect) hints.event(effect);
  else addLog(session, effect.job, effect.log);
}

export function putRecord(
  session: Session,
  [kind, key]: RecordKey,
  body: Json,
  wakeAt: Instant | null,
): void {
  session.run(PUT_RECORD, [kind, key, wakeAt, JSON.stringify(body)]);
}

function deleteRecord(session: Session, key: RecordKey): void {
  session.run(RAISE_FLOOR, key);
  session.run(DELETE_RECORD, key);
}

/** A line of an unknown job is dropped. */
function addLog(session: Session, job: JobId, line: Json): void {
  if (locate(session, [job]).size === 0) return;
  const seq = session.get(ADD_LOG, [job, job, JSON.stringify(line)])?.[0] as number;
  if (seq > LOG_LIMIT) session.run(TRIM_LOG, [job, seq - LOG_LIMIT]);
}
