import type { Instant } from "../../core/time.ts";
import { leaseLoss, type NewTimeout, type Owner, type TimeoutId } from "../../core/timeout/timeout.ts";
import type { IdleGuard } from "../../ports/store.ts";
import type {
  ExtendedLease,
  LeaseAnswer,
  LeasedTimeout,
  ReleasedTimeout,
  Revoked,
  Which,
} from "../../ports/timeouts.ts";
import { batchesOf, textOfTimeout } from "../sql/batches.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import { cancelValues, timeoutValues } from "../sql/timeout-codec.ts";
import { numberArray, textArray } from "./array-literal.ts";
import { STATEMENT } from "./connection.ts";
import type { HintBatch } from "./hints.ts";
import type { Runner } from "./session.ts";
import {
  CANCEL_ID,
  CANCEL_KEY,
  CANCEL_SAGA,
  EXTEND_LEASES,
  HOLD_IDLE,
  HOLD_TIMEOUT,
  INSERT_TIMEOUTS,
  LEASES_OF,
  RELEASE_TIMEOUTS,
  REMOVE_TIMEOUTS,
  REPLACE_TIMEOUTS,
} from "./timeout-statements.ts";
import { inWaves } from "./waves.ts";

/* Writes to timeouts through any runner: a connection, or a transaction of the caller. */

type Inserted = "created" | "exists";

/** Adjacent timeouts are written together. The second timeout of an id or a key waits for the first. */
export function insertTimeouts(
  runner: Runner,
  timeouts: readonly NewTimeout[],
  now: Instant,
  hints: HintBatch,
): Promise<Inserted[]> {
  return inWaves(
    timeouts,
    ({ id }) => id,
    (byId) => inWaves(byId, keyName, (wave) => insertWave(runner, wave, now, hints)),
  );
}

function keyName(timeout: NewTimeout): string | undefined {
  return timeout.key === undefined ? undefined : JSON.stringify([timeoutValues(timeout)[8], timeout.key]);
}

async function insertWave(
  runner: Runner,
  timeouts: readonly NewTimeout[],
  now: Instant,
  hints: HintBatch,
): Promise<Inserted[]> {
  const keyed = timeouts.filter(({ key }) => key !== undefined);
  const others = timeouts.filter(({ key }) => key === undefined);
  const created = new Set<unknown>();
  for (const [statement, rows] of [
    [REPLACE_TIMEOUTS, keyed],
    [INSERT_TIMEOUTS, others],
  ] as const) {
    for (const batch of batchesOf(rows, STATEMENT, textOfTimeout))
      for (const [id] of await runner.run(statement, newValues(batch))) created.add(id);
  }
  return timeouts.map(({ id, dueAt }) => {
    if (!created.has(id)) return "exists";
    hints.timeout(dueAt, now);
    return "created";
  });
}

function newValues(timeouts: readonly NewTimeout[]): unknown[] {
  const rows = timeouts.map(timeoutValues);
  const text = (index: 0 | 1 | 3 | 4 | 5 | 6 | 7 | 8) => textArray(rows, (row) => row[index]);
  const dueAt = numberArray(rows, (row) => row[2]);
  return [text(0), text(1), dueAt, text(3), text(4), text(5), text(6), text(7), text(8)];
}

/** Runs a write by owners in waves, so that no wave names a timeout twice. Answers for each item. */
async function writeLeased<Item extends LeasedTimeout>(
  runner: Runner,
  items: readonly Item[],
  now: Instant,
  write: (wave: readonly Item[]) => Promise<readonly (readonly unknown[])[]>,
): Promise<LeaseAnswer[]> {
  return inWaves(
    items,
    ({ id }) => id,
    async (wave) => {
      const written = new Set((await write(wave)).map(([id]) => id));
      const missed = wave.filter(({ id, owner }) => owner !== undefined && !written.has(id));
      const leases = await leasesOf(runner, missed);
      return wave.map(({ id, owner }): LeaseAnswer => {
        if (written.has(id) || owner === undefined) return "ok";
        // A lease that was lost when it was written and holds now looks like one that had expired.
        return leaseLoss(leases.get(id), owner, now) ?? "expired";
      });
    },
  );
}

export type Lease = { readonly owner: Owner | null; readonly leaseUntil: Instant | null };

async function leasesOf(
  runner: Runner,
  items: readonly LeasedTimeout[],
): Promise<ReadonlyMap<TimeoutId, Lease>> {
  if (items.length === 0) return new Map();
  return leasesIn(await runner.run(LEASES_OF, [textArray(items, ({ id }) => id)]));
}

/** Leases from rows of id, owner and lease_until. */
export function leasesIn(rows: readonly SqlRow[]): ReadonlyMap<TimeoutId, Lease> {
  return new Map(
    rows.map(([id, owner, leaseUntil]) => [
      id as TimeoutId,
      { owner: owner as Owner | null, leaseUntil: leaseUntil as Instant | null },
    ]),
  );
}

export function removeTimeouts(
  runner: Runner,
  leased: readonly LeasedTimeout[],
  now: Instant,
): Promise<LeaseAnswer[]> {
  return writeLeased(runner, leased, now, (wave) => runner.run(REMOVE_TIMEOUTS, [...leaseValues(wave), now]));
}

function leaseValues(leased: readonly LeasedTimeout[]): unknown[] {
  return [textArray(leased, ({ id }) => id), textArray(leased, ({ owner }) => owner)];
}

export async function releaseTimeouts(
  runner: Runner,
  released: readonly ReleasedTimeout[],
  now: Instant,
  hints: HintBatch,
): Promise<LeaseAnswer[]> {
  const answers = await writeLeased(runner, released, now, (wave) =>
    runner.run(RELEASE_TIMEOUTS, [
      ...leaseValues(wave),
      now,
      numberArray(wave, ({ dueAt }) => dueAt),
      numberArray(wave, ({ error }) => (error === undefined ? 0 : 1)),
      textArray(wave, ({ error }) => error),
      numberArray(wave, ({ isDead }) => (isDead ? now : null)),
    ]),
  );
  for (const [index, { dueAt, isDead }] of released.entries()) {
    if (answers[index] === "ok" && !isDead) hints.timeout(dueAt ?? now, now);
  }
  return answers;
}

export function extendLeases(
  runner: Runner,
  extended: readonly ExtendedLease[],
  now: Instant,
): Promise<LeaseAnswer[]> {
  return writeLeased(runner, extended, now, (wave) =>
    runner.run(EXTEND_LEASES, [...leaseValues(wave), now, numberArray(wave, ({ leaseUntil }) => leaseUntil)]),
  );
}

export async function cancelTimeouts(runner: Runner, which: Which, now: Instant): Promise<Revoked> {
  const { id, saga, scoped } = cancelValues(which);
  const rows =
    id !== undefined
      ? await runner.run(CANCEL_ID, [now, id])
      : scoped
        ? await runner.run(CANCEL_KEY, [now, ...scoped])
        : await runner.run(CANCEL_SAGA, [now, saga]);
  const leased = rows.filter(([isLeased]) => isLeased === 1).length;
  return { pending: rows.length - leased, leased };
}

/** Whether a timeout is idle as named; then nobody else writes it before the transaction ends. */
export async function holdIdle(session: Runner, { idle, dueAt, isDead }: IdleGuard): Promise<boolean> {
  return (await session.run(HOLD_IDLE, [idle, dueAt, Number(isDead)])).length > 0;
}

/** Whether an owner holds a timeout. If so, it is locked until the transaction ends. */
export async function holdTimeout(
  session: Runner,
  id: TimeoutId,
  owner: Owner,
  now: Instant,
): Promise<boolean> {
  const [row] = await session.run(HOLD_TIMEOUT, [id]);
  const lease = row && { owner: row[0] as Owner | null, leaseUntil: row[1] as Instant | null };
  return leaseLoss(lease, owner, now) === null;
}
