import type { Instant } from "../../core/time.ts";
import { leaseLoss, type NewTimeout, type Owner, type TimeoutId } from "../../core/timeout/timeout.ts";
import type {
  ExtendedLease,
  LeaseAnswer,
  LeasedTimeout,
  ReleasedTimeout,
  Revoked,
  Which,
} from "../../ports/timeouts.ts";
import { cancelValues, timeoutValues } from "../sql/timeout-codec.ts";
import type { HintBatch } from "./hints.ts";
import type { Session } from "./session.ts";
import {
  CANCEL_ID,
  CANCEL_KEY,
  CANCEL_SAGA,
  EXTEND_LEASE,
  INSERT_TIMEOUT,
  LEASE_OF,
  RELEASE_TIMEOUT,
  REMOVE_TIMEOUT,
  REPLACE_KEY,
} from "./timeout-statements.ts";

/* Writes to single timeouts, in a transaction of the caller. */

export function insertTimeout(
  session: Session,
  timeout: NewTimeout,
  now: Instant,
  hints: HintBatch,
): "created" | "exists" {
  const values = timeoutValues(timeout);
  const scope = values.at(-1) as string | null;
  if (scope !== null) session.run(REPLACE_KEY, [scope, timeout.key, timeout.id]);
  if (session.run(INSERT_TIMEOUT, values) === 0) return "exists";
  hints.timeout(timeout.dueAt, now);
  return "created";
}

/** Why an owner does not hold a timeout; null if it does. */
export function lossOf(session: Session, id: TimeoutId, owner: Owner, now: Instant) {
  const row = session.get(LEASE_OF, [id]);
  const lease = row && { owner: row[0] as Owner | null, leaseUntil: row[1] as Instant | null };
  return leaseLoss(lease, owner, now);
}

function answerOf(
  session: Session,
  changes: number,
  { id, owner }: LeasedTimeout,
  now: Instant,
): LeaseAnswer {
  return changes > 0 || owner === undefined ? "ok" : (lossOf(session, id, owner, now) ?? "ok");
}

function leaseValues({ id, owner = undefined }: LeasedTimeout, now: Instant): unknown[] {
  return [id, owner ?? null, owner ?? null, now];
}

export function removeTimeout(session: Session, leased: LeasedTimeout, now: Instant): LeaseAnswer {
  return answerOf(session, session.run(REMOVE_TIMEOUT, leaseValues(leased, now)), leased, now);
}

export function releaseTimeout(
  session: Session,
  released: ReleasedTimeout,
  now: Instant,
  hints: HintBatch,
): LeaseAnswer {
  const { dueAt, error, isDead } = released;
  const values = [dueAt ?? null, error === undefined ? 0 : 1, error ?? null, isDead ? now : null];
  const changes = session.run(RELEASE_TIMEOUT, [...values, ...leaseValues(released, now)]);
  if (changes > 0 && !isDead) hints.timeout(dueAt ?? now, now);
  return answerOf(session, changes, released, now);
}

export function extendLease(session: Session, extended: ExtendedLease, now: Instant): LeaseAnswer {
  const { id, owner, leaseUntil } = extended;
  return answerOf(session, session.run(EXTEND_LEASE, [leaseUntil, id, owner, now]), extended, now);
}

export function cancelTimeouts(session: Session, which: Which, now: Instant): Revoked {
  const { id, saga, scoped } = cancelValues(which);
  const rows =
    id !== undefined
      ? session.all(CANCEL_ID, [id, now])
      : scoped
        ? session.all(CANCEL_KEY, [...scoped, now])
        : session.all(CANCEL_SAGA, [saga, now]);
  const leased = rows.filter(([isLeased]) => isLeased === 1).length;
  return { pending: rows.length - leased, leased };
}
