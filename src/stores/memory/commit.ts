import { countedDownRow } from "../../core/job/decide/store-formulas.ts";
import { writtenRow } from "../../core/job/decide/written-row.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { effectiveLimit, type KeyUse, type LimitOverride, roomOf } from "../../core/limit/limit.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import {
  type Effect,
  type Enqueued,
  type Guard,
  type JobWrite,
  limitRecordKey,
  type Outcome,
  START_KIND,
  startKey,
  startsOf,
  type Unit,
} from "../../ports/store.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { admissionsLast } from "../admissions.ts";
import type { EventLog } from "./event-log.ts";
import type { HintBatch } from "./hints.ts";
import type { JobEntry, JobTable } from "./job-table.ts";
import type { RecordTable } from "./record-table.ts";
import type { TimeoutTable } from "./timeout-table.ts";

export interface Tables {
  readonly jobs: JobTable;
  readonly records: RecordTable;
  readonly timeouts: TimeoutTable;
  readonly events: EventLog;
}

const DONE: Outcome = { ok: true };

/** Checks all guards before it writes anything. Nothing fails after that, so a unit is all or nothing. */
export function commitUnit(tables: Tables, unit: Unit, now: Instant, hints: HintBatch): Outcome {
  const entry = unit.job && tables.jobs.get(unit.job.id);
  const because = refusal(tables, unit, entry, now);
  if (because) {
    return { ok: false, because, at: entry ? positionOf(entry) : null };
  }
  if (unit.job && entry) writeJob(tables.jobs, entry, unit.job, hints);
  return unit.effects ? applyEffects(tables, unit.effects, now, hints) : DONE;
}

function applyEffects(tables: Tables, effects: readonly Effect[], now: Instant, hints: HintBatch): Outcome {
  const revoked: Revoked[] = [];
  for (const effect of admissionsLast(effects)) {
    if ("revoke" in effect) revoked.push(tables.timeouts.cancel(effect.revoke, now));
    else applyEffect(tables, effect, now, hints);
  }
  return revoked.length === 0 ? DONE : { ok: true, revoked };
}

type Refusal = Extract<Outcome, { ok: false }>["because"];

function refusal(
  tables: Tables,
  { job, when }: Unit,
  entry: JobEntry | undefined,
  now: Instant,
): Refusal | null {
  if (job) {
    if (!entry) return "gone";
    if (entry.row.fence !== job.fence) return "lost";
    // An attempt cannot change a job that has ended. Only a write that names a revision can.
    if (job.rev === undefined && isTerminal(entry.row.state)) return "lost";
    if (job.rev !== undefined && entry.row.rev !== job.rev) return "stale";
  }
  if (!when) return null;
  for (const guard of when) {
    const because = guardRefusal(tables, guard, now);
    if (because) return because;
  }
  return null;
}

function guardRefusal({ records, timeouts }: Tables, guard: Guard, now: Instant): Refusal | null {
  if ("timeout" in guard) return timeouts.isLeasedBy(guard.timeout, guard.owner, now) ? null : "lapsed";
  if ("idle" in guard) return timeouts.isIdle(guard) ? null : "lapsed";
  return (records.get(guard.record)?.version ?? 0) === guard.version ? null : "conflict";
}

function positionOf({ row }: JobEntry): NonNullable<Extract<Outcome, { ok: false }>["at"]> {
  return { state: row.state, fence: row.fence, rev: row.rev };
}

function writeJob(jobs: JobTable, entry: JobEntry, write: JobWrite, hints: HintBatch): void {
  const before = entry.row;
  const state = write.image?.state ?? before.state;
  if (write.drop) jobs.delete(entry);
  else if (write.image) jobs.write(entry, writtenRow(before, write, before.rev + 1));
  else jobs.amend(entry, writtenRow(before, write, before.rev));
  const isVoided = (write.nextFence ?? before.fence) !== before.fence;
  if (before.state === "active" && (isVoided || write.notifyHolder)) hints.lost(before.id);
  if (isTerminal(state) && !isTerminal(before.state)) hints.settled(before.id);
  if (state === "available" && before.state !== "available") hints.ready(before.queue);
}

export function enqueueJob(
  { jobs, events }: Pick<Tables, "jobs" | "events">,
  job: NewJob,
  now: Instant,
  hints: HintBatch,
): Enqueued {
  const answer = jobs.insert(job);
  if (answer !== "created") return answer;
  if (job.image.state === "available") hints.ready(job.queue);
  if (job.records) events.add(job.records, now);
  return answer;
}

function applyEffect(
  tables: Tables,
  effect: Exclude<Effect, { revoke: unknown }>,
  now: Instant,
  hints: HintBatch,
): void {
  const { jobs, records, timeouts, events } = tables;
  if ("enqueue" in effect) enqueueJob(tables, effect.enqueue, now, hints);
  else if ("countdown" in effect) countDown(jobs, effect.countdown, now);
  else if ("put" in effect) records.put(effect.put, effect.body, effect.wakeAt);
  else if ("delete" in effect) records.delete(effect.delete);
  else if ("remove" in effect) timeouts.remove({ id: effect.remove }, now);
  else if ("request" in effect) {
    if (timeouts.insert(effect.request) === "created") hints.timeout(effect.request.dueAt, now);
  } else if ("admit" in effect) admit(tables, effect, hints);
  else if ("spend" in effect) spend(records, effect, now);
  else if ("ready" in effect) hints.ready(effect.ready);
  else if ("event" in effect) events.add(effect, now);
  else {
    const entry = jobs.get(effect.job);
    if (entry) jobs.log(entry, effect.log);
  }
}

/** Admits at most `count` waiting jobs, and at most as many as the limit has room for. */
function admit(
  { jobs, records }: Tables,
  { admit: limitKey, count, limit }: Extract<Effect, { admit: string }>,
  hints: HintBatch,
): void {
  const room = limit
    ? roomOf(effectiveLimit(limit, overrideOf(records, limitKey)), limitUse(jobs, records, limitKey))
    : count;
  for (const { row } of jobs.admit(limitKey, Math.min(count, room))) hints.ready(row.queue);
}

function spend(records: RecordTable, effect: Extract<Effect, { spend: string }>, now: Instant): void {
  const { spend: limitKey, by, at, limit } = effect;
  const { rate } = effectiveLimit(limit, overrideOf(records, limitKey));
  if (rate === undefined || at + rate.per <= now) return;
  records.put(startKey(limitKey, by), { limitKey, limit } as unknown as Json, at + rate.per);
}

function overrideOf(records: RecordTable, limitKey: string): LimitOverride | undefined {
  return records.get(limitRecordKey(limitKey))?.body as LimitOverride | undefined;
}

export function startsBehind(records: RecordTable, limitKey: string): ReturnType<RecordTable["count"]> {
  return records.count(START_KIND, startsOf(limitKey).from);
}

export function limitUse(jobs: JobTable, records: RecordTable, limitKey: string): KeyUse {
  return { ...jobs.limits.count(limitKey), starts: startsBehind(records, limitKey).count };
}

function countDown(jobs: JobTable, id: string, now: Instant): void {
  const entry = jobs.get(id);
  const { state, needs } = entry?.row ?? {};
  if (!entry || (state !== "pending" && state !== "scheduled") || needs === 0) return;
  jobs.write(entry, countedDownRow(entry.row, now));
}
