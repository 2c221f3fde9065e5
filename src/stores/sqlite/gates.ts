import {
  effectiveLimit,
  type GateLimit,
  type GateUse,
  type LimitOverride,
  roomOf,
} from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, type GateRow, limitKey, startKey, startsOf } from "../../ports/store.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import { GATE_STARTS, GATE_USE, GATE_WAITING } from "./gate-statements.ts";
import type { HintBatch } from "./hints.ts";
import type { Session } from "./session.ts";
import { ADMIT, LOAD_RECORD, PUT_RECORD } from "./statements.ts";

/** As many as wait, as are asked for, and as the limit has room for. */
export function admit(
  session: Session,
  { admit: gate, count, limit }: Extract<Effect, { admit: string }>,
  hints: HintBatch,
): void {
  const room = limit ? roomOf(limitOf(session, gate, limit), gateUse(session, gate)) : count;
  const most = Math.min(count, room);
  if (most <= 0) return;
  for (const [queue] of session.all(ADMIT, [gate, most])) hints.ready(queue as string);
}

export function spend(session: Session, effect: Extract<Effect, { spend: string }>, now: Instant): void {
  const { spend: gate, by, at, limit } = effect;
  const { rate } = limitOf(session, gate, limit);
  if (rate === undefined || at + rate.per <= now) return;
  session.run(PUT_RECORD, [...startKey(gate, by), at + rate.per, JSON.stringify({ gate, limit })]);
}

function limitOf(session: Session, gate: string, own: GateLimit): GateLimit {
  const body = session.get(LOAD_RECORD, limitKey(gate))?.[4] as string | undefined;
  return effectiveLimit(own, body === undefined ? null : (JSON.parse(body) as LimitOverride));
}

function gateUse(session: Session, gate: string): GateUse {
  const use = { available: 0, active: 0, unstarted: 0, retryable: 0 };
  for (const [state, count, unstarted] of session.all(GATE_USE, [gate])) {
    if (state === STATE_CODES.available) use.available = count as number;
    else if (state === STATE_CODES.retryable) use.retryable = count as number;
    else if (state === STATE_CODES.active) {
      use.active = count as number;
      use.unstarted = unstarted as number;
    }
  }
  return { ...use, starts: startsBehind(session, gate)?.[0] as number };
}

function startsBehind(session: Session, gate: string) {
  const { from, to } = startsOf(gate);
  return session.get(GATE_STARTS, [from, to]);
}

export function gateRow(session: Session, gate: string): GateRow {
  return {
    gate,
    waiting: session.get(GATE_WAITING, [gate])?.[0] as number,
    ...gateUse(session, gate),
    nextAt: (startsBehind(session, gate)?.[1] ?? null) as Instant | null,
  };
}
