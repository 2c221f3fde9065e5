import {
  effectiveLimit,
  type KeyLimit,
  type KeyUse,
  type LimitOverride,
  roomOf,
} from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, type LimitRow, limitRecordKey, startKey, startsOf } from "../../ports/store.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import type { HintBatch } from "./hints.ts";
import { LIMIT_STARTS, LIMIT_USE, LIMIT_WAITING } from "./limit-statements.ts";
import type { Session } from "./session.ts";
import { ADMIT, LOAD_RECORD, PUT_RECORD } from "./statements.ts";

/** Admits at most `count` waiting jobs, and at most as many as the limit has room for. */
export function admit(
  session: Session,
  { admit: limitKey, count, limit }: Extract<Effect, { admit: string }>,
  hints: HintBatch,
): void {
  const room = limit ? roomOf(limitOf(session, limitKey, limit), limitUse(session, limitKey)) : count;
  const most = Math.min(count, room);
  if (most <= 0) return;
  for (const [queue] of session.all(ADMIT, [limitKey, most])) hints.ready(queue as string);
}

export function spend(session: Session, effect: Extract<Effect, { spend: string }>, now: Instant): void {
  const { spend: limitKey, by, at, limit } = effect;
  const { rate } = limitOf(session, limitKey, limit);
  if (rate === undefined || at + rate.per <= now) return;
  session.run(PUT_RECORD, [...startKey(limitKey, by), at + rate.per, JSON.stringify({ limitKey, limit })]);
}

function limitOf(session: Session, limitKey: string, own: KeyLimit): KeyLimit {
  const body = session.get(LOAD_RECORD, limitRecordKey(limitKey))?.[4] as string | undefined;
  return effectiveLimit(own, body === undefined ? null : (JSON.parse(body) as LimitOverride));
}

function limitUse(session: Session, limitKey: string): KeyUse {
  const use = { available: 0, active: 0, unstarted: 0, retryable: 0 };
  for (const [state, count, unstarted] of session.all(LIMIT_USE, [limitKey])) {
    if (state === STATE_CODES.available) use.available = count as number;
    else if (state === STATE_CODES.retryable) use.retryable = count as number;
    else if (state === STATE_CODES.active) {
      use.active = count as number;
      use.unstarted = unstarted as number;
    }
  }
  return { ...use, starts: startsBehind(session, limitKey)?.[0] as number };
}

function startsBehind(session: Session, limitKey: string) {
  const { from, to } = startsOf(limitKey);
  return session.get(LIMIT_STARTS, [from, to]);
}

export function limitRow(session: Session, limitKey: string): LimitRow {
  return {
    key: limitKey,
    waiting: session.get(LIMIT_WAITING, [limitKey])?.[0] as number,
    ...limitUse(session, limitKey),
    nextAt: (startsBehind(session, limitKey)?.[1] ?? null) as Instant | null,
  };
}
