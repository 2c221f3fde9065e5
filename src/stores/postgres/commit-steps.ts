import type { NewEvent } from "../../core/event/new-event.ts";
import type { Instant } from "../../core/time.ts";
import { leaseLoss, type TimeoutId } from "../../core/timeout/timeout.ts";
import type { Effect, Guard, Outcome, RecordKey, Unit } from "../../ports/store.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { textOfUnit } from "../sql/batches.ts";
import { textArray } from "./array-literal.ts";
import { STATEMENT } from "./connection.ts";
import { addEvents, type CommitScope, follow, isFollower } from "./followers.ts";
import { HintBatch } from "./hints.ts";
import type { Runner } from "./session.ts";
import { CREATE_RECORD, DELETE_RECORD, HOLD_RECORD, PUT_RECORD } from "./statements.ts";
import { CANCEL_IDS, HOLD_TIMEOUTS } from "./timeout-statements.ts";
import { insertTimeouts, type Lease, leasesIn, removeTimeouts } from "./write-timeouts.ts";

type RecordGuard = Extract<Guard, { record: unknown }>;

/** A unit in the form of a saga step: it guards at most one record and one timeout, and touches nothing twice. */
interface Step {
  readonly unit: Unit;
  readonly record: RecordGuard | undefined;
  /** Everything it touches. No two steps of a set may share a name. */
  readonly names: ReadonlySet<string>;
}

/** The longest run of steps from `start` that cannot see each other and fit into a transaction. */
export function leadingSteps(units: readonly Unit[], start: number): Step[] {
  const steps: Step[] = [];
  const named = new Set<string>();
  let text = 0;
  for (let index = start; index < units.length; index++) {
    const step = stepOf(units[index] as Unit);
    if (!step || [...step.names].some((name) => named.has(name))) break;
    text += textOfUnit(step.unit);
    if (text > STATEMENT.text && steps.length > 0) break;
    for (const name of step.names) named.add(name);
    steps.push(step);
  }
  return steps;
}

function stepOf(unit: Unit): Step | undefined {
  const { job, when = [], effects = [] } = unit;
  const records = when.filter((guard) => "record" in guard);
  if (job || when.length === 0 || when.some((guard) => "idle" in guard)) return undefined;
  if (records.length > 1 || when.length - records.length > 1) return undefined;
  const record = records[0];
  const touched: string[] = [];
  for (const effect of effects) {
    const name = nameOf(effect, record?.record);
    if (name === undefined) return undefined;
    if (name !== "") touched.push(name);
  }
  const names = new Set(touched);
  if (names.size < touched.length) return undefined;
  for (const guard of when) {
    if ("record" in guard) names.add(recordName(guard.record));
    else if ("timeout" in guard) names.add(timeoutName(guard.timeout));
  }
  return { unit, record, names };
}

/** What an effect touches; empty if no guard can depend on it; undefined if it may touch more than it names. */
function nameOf(effect: Effect, guarded: RecordKey | undefined): string | undefined {
  if ("put" in effect) return recordName(effect.put);
  if ("delete" in effect) return recordName(effect.delete);
  if ("remove" in effect) return timeoutName(effect.remove);
  if ("revoke" in effect) return "id" in effect.revoke ? timeoutName(effect.revoke.id) : undefined;
  if ("request" in effect) {
    const { id, key, saga } = effect.request;
    // A key replaces the timeout that has it. Only steps of the same saga touch the timeouts of a saga.
    const isOwn = key === undefined || (saga && guarded && recordName(saga) === recordName(guarded));
    return isOwn ? timeoutName(id) : undefined;
  }
  return "enqueue" in effect || "event" in effect ? "" : undefined;
}

function recordName(key: RecordKey): string {
  return `record ${JSON.stringify([key[0], key[1]])}`;
}

function timeoutName(id: TimeoutId): string {
  return `timeout ${id}`;
}

/** Commits steps in one transaction. A step whose guard fails writes nothing and does not affect the others. */
export async function commitSteps(
  scope: CommitScope,
  steps: readonly Step[],
  now: Instant,
  hints: HintBatch,
): Promise<Outcome[]> {
  const { outcomes, sent } = await scope.atomically(async (session) => {
    const batch = new HintBatch();
    const versions = await holdRecords(session, steps);
    const leases = await holdTimeouts(session, steps);
    const answers: Outcome[] = [];
    for (const step of steps) answers.push(await writeRecords(session, step, versions, leases, now));
    const passed = steps.flatMap(({ unit }, index) => (answers[index]?.ok ? [unit] : []));
    const effects = passed.flatMap((unit) => unit.effects ?? []);
    await removeTimeouts(
      session,
      effects.flatMap((effect) => ("remove" in effect ? [{ id: effect.remove }] : [])),
      now,
    );
    const revoked = await revokeAll(session, effects, now);
    const requests = effects.flatMap((effect) => ("request" in effect ? [effect.request] : []));
    if (requests.length > 0) await insertTimeouts(session, requests, now, batch);
    const events: NewEvent[] = [];
    await follow(session, effects.filter(isFollower), now, batch, events);
    await addEvents(session, events, now);
    return {
      outcomes: answers.map((answer, index) => withRevokes(answer, steps[index], revoked)),
      sent: batch,
    };
  });
  hints.merge(sent);
  return outcomes;
}

/** In the order of their keys, so that two transactions do not deadlock. */
async function holdRecords(
  session: Runner,
  steps: readonly Step[],
): Promise<ReadonlyMap<RecordGuard, number>> {
  const guards = steps.flatMap(({ record }) => (record ? [record] : []));
  guards.sort((a, b) => (recordName(a.record) < recordName(b.record) ? -1 : 1));
  const versions = new Map<RecordGuard, number>();
  for (const guard of guards) {
    const [row] = await session.run(HOLD_RECORD, [...guard.record]);
    versions.set(guard, (row?.[0] as number | undefined) ?? 0);
  }
  return versions;
}

async function holdTimeouts(session: Runner, steps: readonly Step[]): Promise<ReadonlyMap<TimeoutId, Lease>> {
  const ids = steps.flatMap(({ unit }) =>
    (unit.when ?? []).flatMap((guard) => ("timeout" in guard ? [guard.timeout] : [])),
  );
  if (ids.length === 0) return new Map();
  return leasesIn(await session.run(HOLD_TIMEOUTS, [textArray(ids, (id) => id)]));
}

/** Checks the guards and writes the records. It writes a record that must not exist first: only that can still fail. */
async function writeRecords(
  session: Runner,
  { unit, record }: Step,
  versions: ReadonlyMap<RecordGuard, number>,
  leases: ReadonlyMap<TimeoutId, Lease>,
  now: Instant,
): Promise<Outcome> {
  for (const guard of unit.when ?? []) {
    if ("timeout" in guard) {
      if (leaseLoss(leases.get(guard.timeout), guard.owner, now))
        return { ok: false, because: "lapsed", at: null };
    } else if ("record" in guard && versions.get(guard) !== guard.version)
      return { ok: false, because: "conflict", at: null };
  }
  const created = record?.version === 0 ? recordName(record.record) : undefined;
  const puts = (unit.effects ?? []).filter((effect) => "put" in effect);
  for (const effect of puts.toSorted((a, b) => Number(isNew(b, created)) - Number(isNew(a, created)))) {
    const values = [...effect.put, effect.wakeAt, JSON.stringify(effect.body)];
    const rows = await session.run(isNew(effect, created) ? CREATE_RECORD : PUT_RECORD, values);
    if (isNew(effect, created) && rows.length === 0) return { ok: false, because: "conflict", at: null };
  }
  for (const effect of unit.effects ?? [])
    if ("delete" in effect) await session.run(DELETE_RECORD, [...effect.delete]);
  return { ok: true };
}

function isNew(effect: { readonly put: RecordKey }, created: string | undefined): boolean {
  return created !== undefined && recordName(effect.put) === created;
}

async function revokeAll(
  session: Runner,
  effects: readonly Effect[],
  now: Instant,
): Promise<ReadonlyMap<TimeoutId, Revoked>> {
  const ids = effects.flatMap((effect) =>
    "revoke" in effect && "id" in effect.revoke ? [effect.revoke.id] : [],
  );
  if (ids.length === 0) return new Map();
  const rows = await session.run(CANCEL_IDS, [now, textArray(ids, (id) => id)]);
  return new Map(
    rows.map(([id, isLeased]) => [
      id as TimeoutId,
      isLeased === 1 ? { pending: 0, leased: 1 } : { pending: 1, leased: 0 },
    ]),
  );
}

function withRevokes(
  answer: Outcome,
  step: Step | undefined,
  revoked: ReadonlyMap<TimeoutId, Revoked>,
): Outcome {
  const answers = (step?.unit.effects ?? []).flatMap((effect) =>
    "revoke" in effect && "id" in effect.revoke
      ? [revoked.get(effect.revoke.id) ?? { pending: 0, leased: 0 }]
      : [],
  );
  return answer.ok && answers.length > 0 ? { ok: true, revoked: answers } : answer;
}
