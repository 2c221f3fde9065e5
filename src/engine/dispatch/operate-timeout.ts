import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError } from "../../core/errors.ts";
import { decodeRecord, encodeRecord } from "../../core/saga/saga-record.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { checkText, type NewTimeout, type TimeoutId, type TimeoutRow } from "../../core/timeout/timeout.ts";
import { parseWhen, type When, wallClockOf } from "../../core/timeout/when.ts";
import type { Effect, Unit } from "../../ports/store.ts";
import type { Revoked, Which } from "../../ports/timeouts.ts";
import { commitUnits, STALE_TRIES } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";

/** Kinds of the keys that sagas give their timeouts and their messages. */
const SAGA = "saga";
const MAIL = "mail";

const NOTHING: Revoked = { pending: 0, leased: 0 };

/** What a timeout was when it was revoked. The handler of a leased one may run; a saga's handler cannot commit. */
export type RevokedState = "pending" | "leased" | "dead";

async function loadTimeout({ store }: EngineContext, id: TimeoutId, call: string): Promise<TimeoutRow> {
  const [row] = await store.timeouts.load([checkText(id, "id")]);
  if (row) return row;
  const fix = "it was handled, revoked or replaced, or the id is wrong";
  throw new CurfewError("not_found", `${call}: there is no timeout ${id}; ${fix}`);
}

function entryOf(
  context: EngineContext,
  row: TimeoutRow,
  action: string,
  by: By | undefined,
  now: Instant,
  more: { readonly [key: string]: Json } = {},
): readonly Effect[] {
  const details = { timeout: row.id, destination: row.destination, ...more };
  return auditEffects(context, by, `timeout.${action}`, { details }, now);
}

/** Repeats a decision on a timeout, which returns undefined if the timeout changed since it was read. */
async function untilCommitted<Answer>(
  context: EngineContext,
  call: string,
  id: TimeoutId,
  attempt: (row: TimeoutRow) => Promise<Answer | undefined>,
): Promise<Answer> {
  for (let tries = 0; tries < STALE_TRIES; tries++) {
    const answer = await attempt(await loadTimeout(context, id, call));
    if (answer !== undefined) return answer;
  }
  throw refused(call, id, `changed ${STALE_TRIES} times during this call; try again`);
}

/** Revokes one timeout. If it is a saga's, the same commit removes it from the saga's pending list. */
export function revokeTimeout(
  context: EngineContext,
  id: TimeoutId,
  by: By | undefined,
): Promise<RevokedState> {
  const { clock } = context;
  return untilCommitted(context, "revoke", id, async (row) => {
    const isUndo = row.saga?.[0] === SAGA && row.headers !== null && "undo" in row.headers;
    if (isUndo)
      throw refused("revoke", id, "takes a step of its saga back; end the saga to leave out its undos");
    const now = clock.now();
    const saga = await withoutPending(context, row, now);
    const unit: Unit = {
      when: [
        ...(saga?.when ?? []),
        ...(row.owner === null ? [{ idle: id, dueAt: row.dueAt, isDead: row.deadAt !== null }] : []),
      ],
      effects: [
        ...(saga?.effects ?? []),
        { revoke: { id } },
        ...entryOf(context, row, "revoke", by, now, { dueAt: row.dueAt }),
      ],
    };
    const [outcome] = await commitUnits(context, [unit]);
    if (!outcome?.ok) return undefined;
    if (row.owner === null) return row.deadAt === null ? "pending" : "dead";
    const { pending = 0, leased = 0 } = outcome.revoked?.[0] ?? {};
    // The lease holder may have removed it since it was read.
    if (pending + leased === 0) return undefined;
    return leased > 0 ? "leased" : "pending";
  });
}

/** Cancels timeouts for a named caller: the audit entry is in the same commit. */
export async function cancelTimeouts(context: EngineContext, which: Which, by: By): Promise<Revoked> {
  const details = JSON.parse(JSON.stringify(which)) as { readonly [key: string]: Json };
  const audit = auditEffects(context, by, "timeout.cancel", { details }, context.clock.now());
  const [outcome] = await commitUnits(context, [{ when: [], effects: [{ revoke: which }, ...audit] }]);
  return outcome?.ok ? (outcome.revoked?.[0] ?? NOTHING) : NOTHING;
}

/** The record of a live saga without this timeout; undefined if no live saga waits for it. */
async function withoutPending({ store }: EngineContext, { id, saga }: TimeoutRow, now: Instant) {
  if (saga?.[0] !== SAGA) return undefined;
  const [stored] = await store.records.load([saga]);
  const record = stored ? decodeRecord(stored.body) : null;
  if (!stored || record?.completedAt !== null || !record.pending.some((one) => one.id === id))
    return undefined;
  const pending = record.pending.filter((one) => one.id !== id);
  const body = encodeRecord({ ...record, pending, changedAt: now });
  return {
    when: [{ record: saga, version: stored.version }],
    effects: [{ put: saga, body, wakeAt: stored.wakeAt }],
  };
}

/** Moves a pending timeout to another instant and resets its tries. */
export async function rescheduleTimeout(
  context: EngineContext,
  id: TimeoutId,
  when: When,
  by: By | undefined,
): Promise<TimeoutRow> {
  const { clock, calendars } = context;
  const parsed = parseWhen(when, clock.anchor(), "when", calendars);
  const wallClock = wallClockOf(parsed);
  return untilCommitted(context, "reschedule", id, async (row) => {
    if (row.deadAt !== null) throw refused("reschedule", id, "is dead; requeue it");
    if (row.owner !== null)
      throw refused("reschedule", id, "is leased and may be being handled; revoke it, or try again later");
    if (row.saga?.[0] === MAIL)
      throw refused("reschedule", id, "is a message of a saga, handled in the order of arrival; revoke it");
    const entry = entryOf(context, row, "reschedule", by, clock.now(), {
      from: row.dueAt,
      to: parsed.dueAt,
    });
    if (await rewrite(context, row, parsed.dueAt, wallClock, entry))
      return loadTimeout(context, id, "reschedule");
    return undefined;
  });
}

/** Makes a dead timeout due at once, with all its tries. */
export function requeueTimeout(
  context: EngineContext,
  id: TimeoutId,
  by: By | undefined,
): Promise<TimeoutRow> {
  const { clock } = context;
  return untilCommitted(context, "requeue", id, async (row) => {
    if (row.deadAt === null)
      throw refused("requeue", id, "is not dead; reschedule it, or wait until it is due");
    const now = clock.now();
    const entry = entryOf(context, row, "requeue", by, now, { error: row.error });
    if (await rewrite(context, row, now, row.wallClock ?? undefined, entry))
      return loadTimeout(context, id, "requeue");
    return undefined;
  });
}

/** Stores the timeout again with another instant, if it has not changed since it was read. */
async function rewrite(
  context: EngineContext,
  row: TimeoutRow,
  dueAt: Instant,
  wallClock: Json | undefined,
  entry: readonly Effect[],
): Promise<boolean> {
  const { id, destination, payload, headers, key, saga } = row;
  const request: NewTimeout = {
    id,
    destination,
    dueAt,
    ...(payload !== null && { payload }),
    ...(headers !== null && { headers }),
    ...(key !== null && { key }),
    ...(saga !== null && { saga }),
    ...(wallClock !== undefined && { wallClock }),
  };
  const unit: Unit = {
    when: [{ idle: id, dueAt: row.dueAt, isDead: row.deadAt !== null }],
    effects: [{ remove: id }, { request }, ...entry],
  };
  const [outcome] = await commitUnits(context, [unit]);
  return outcome?.ok === true;
}

function refused(call: string, id: TimeoutId, why: string): CurfewError {
  return new CurfewError("invalid_state", `${call}: timeout ${id} ${why}`);
}
