import { namesOf, tenantPrefix } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import {
  checkTimeout,
  compareIds,
  sagaText,
  type TimeoutId,
  type TimeoutRow,
} from "../../core/timeout/timeout.ts";
import type {
  CalendarRequest,
  DueRequest,
  TimeoutCounts,
  TimeoutFilter,
  TimeoutStore,
} from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import { noText, textOfTimeout } from "../sql/batches.ts";
import { byDue, decodeTimeout } from "../sql/timeout-codec.ts";
import { BATCH, type Connection } from "./connection.ts";
import type { Session } from "./session.ts";
import {
  CALENDAR,
  CALENDAR_OF,
  CLAIM_DUE,
  COUNT_TIMEOUTS,
  DUE,
  DUE_OF,
  LIST_DEAD,
  LIST_OF_SAGA,
  LIST_TIMEOUTS,
  LIST_WALL_CLOCK,
  LOAD_TIMEOUTS,
  NEXT_DUE,
  NEXT_DUE_OF,
  REAP,
  REQUEUE,
  RESCHEDULE,
  TENANT_CALENDAR,
  TIMEOUT_RANGE_END,
} from "./timeout-statements.ts";
import type { Transactions } from "./transactions.ts";
import {
  cancelTimeouts,
  extendLease,
  insertTimeout,
  releaseTimeout,
  removeTimeout,
} from "./write-timeouts.ts";

/**
 * Inserts, removals, releases and cancels are on disk when they are acknowledged. A power cut may undo leases. It
 * also ends every process on this machine, so the timeouts are simply claimed again.
 */
export function createTimeoutStore(connection: Connection, transactions: Transactions): TimeoutStore {
  return {
    leases: true,
    async insert(timeouts, { now, tx }) {
      checkBatch(timeouts, "timeouts");
      for (const timeout of timeouts) checkTimeout(timeout);
      return transactions.run(timeouts, textOfTimeout, { now, tx }, (session, batch, hints) =>
        batch.map((timeout) => insertTimeout(session, timeout, now, hints)),
      );
    },
    async claimDue(request) {
      return claimDue(connection, request, claimLimit(request));
    },
    async remove(leased, { now }) {
      checkBatch(leased, "leased");
      return transactions.run(leased, noText, { now }, (session, batch) =>
        batch.map((one) => removeTimeout(session, one, now)),
      );
    },
    async release(released, { now }) {
      checkBatch(released, "released");
      checkReleased(released);
      return transactions.run(released, noText, { now }, (session, batch, hints) =>
        batch.map((one) => releaseTimeout(session, one, now, hints)),
      );
    },
    async extend(extended, { now }) {
      connection.assertOpen();
      checkBatch(extended, "extended");
      checkExtended(extended);
      return connection.inBatches(extended, noText, (batch) =>
        connection.write((session) => batch.map((one) => extendLease(session, one, now))),
      );
    },
    reap: ({ now }) => reap(connection, now),
    async cancel(which, { now, tx }) {
      const [revoked] = await transactions.run([which], noText, { now, tx }, (session) => [
        cancelTimeouts(session, which, now),
      ]);
      return revoked ?? { pending: 0, leased: 0 };
    },
    ...createOperations(connection, transactions),
  };
}

function createOperations(
  connection: Connection,
  transactions: Transactions,
): Pick<TimeoutStore, "requeue" | "reschedule" | "load" | "calendar" | "list" | "nextDueAt" | "count"> {
  return {
    async requeue(ids, { now }) {
      checkBatch(ids, "ids");
      const changes = await transactions.run(ids, noText, { now }, (session, batch, hints) => {
        hints.timeout(now, now);
        return batch.map((id) => session.run(REQUEUE, [now, id]));
      });
      return changes.reduce((sum, each) => sum + each, 0);
    },
    async reschedule(moves, { now }) {
      checkBatch(moves, "moves");
      checkMoves(moves);
      const changes = await transactions.run(moves, noText, { now }, (session, batch, hints) =>
        batch.map(({ id, from, to }) => {
          hints.timeout(to, now);
          return session.run(RESCHEDULE, [to, id, from]);
        }),
      );
      return changes.reduce((sum, each) => sum + each, 0);
    },
    async load(ids) {
      checkBatch(ids, "ids");
      const rows = await connection.read((session) => session.all(LOAD_TIMEOUTS, [JSON.stringify(ids)]));
      const found = new Map(rows.map(decodeTimeout).map((row) => [row.id, row]));
      return ids.map((id) => found.get(id) ?? null);
    },
    async calendar(request) {
      checkLimit(request.limit);
      return calendar(connection, request);
    },
    async list(filter, after, limit) {
      checkLimit(limit);
      return list(connection, filter, after ?? namesOf(filter.tenant).from, limit);
    },
    nextDueAt: (destinations) => nextDueAt(connection, destinations),
    count: ({ now, tenant }) => count(connection, now, namesOf(tenant)),
  };
}

async function nextDueAt(connection: Connection, destinations?: readonly string[]): Promise<Instant | null> {
  return connection.read((session) => {
    if (!destinations) return session.get(NEXT_DUE)?.[0] as Instant | null;
    const dues = destinations.map((name) => session.get(NEXT_DUE_OF, [name, name])?.[0] as Instant | null);
    return dues.reduce(earlier, null);
  });
}

/** Checks whether anything is due without the write lock, so that idle processes do not block busy ones. */
async function claimDue(connection: Connection, request: DueRequest, limit: number): Promise<TimeoutRow[]> {
  const { now, leaseUntil, owner, destinations } = request;
  const next = await nextDueAt(
    connection,
    destinations?.map(({ name }) => name),
  );
  if (next === null || next > now) return [];
  const rows = await connection.write((session) => {
    const numbers = dueRows(session, request, limit);
    return session.all(CLAIM_DUE, [owner, leaseUntil, JSON.stringify(numbers)]);
  });
  return rows.map(decodeTimeout).sort(byDue);
}

function dueRows(session: Session, { now, destinations }: DueRequest, limit: number): number[] {
  const due = destinations
    ? destinations.flatMap(({ name, limit: most }) =>
        session.all(DUE_OF, [name, now, most, name, now, now, most]),
      )
    : session.all(DUE, [now, limit, now, now, limit]);
  return (due as [number, Instant, TimeoutId][])
    .sort((a, b) => a[1] - b[1] || compareIds(a[2], b[2]))
    .slice(0, limit)
    .map(([number]) => number);
}

async function reap(connection: Connection, now: Instant): Promise<number> {
  for (let reaped = 0; ; ) {
    const more = await connection.write((session) => session.run(REAP, [now, BATCH.items]));
    reaped += more;
    if (more < BATCH.items) return reaped;
  }
}

/** The most rows that are read at once: reading a large table must not stop the engine, which shares the thread. */
const RANGE_ROWS = 2_000;
/** Sorts after every id: no UTF-8 text contains a higher byte. */
const LAST_ID = "\u{10ffff}".repeat(2);

async function list(
  connection: Connection,
  filter: TimeoutFilter,
  after: TimeoutId,
  limit: number,
): Promise<TimeoutRow[]> {
  const { destination = null, isDead = null, hasWallClock = null } = filter;
  const saga = filter.saga ? sagaText(filter.saga) : null;
  const matching = [destination, saga, isDead === null ? null : Number(isDead), hasWallClock ? 1 : null];
  // The first row of another tenant ends the list: ids of a tenant stand together.
  const { to: end } = namesOf(filter.tenant);
  const by = async (text: string, values: readonly unknown[]) => {
    const rows = await connection.read((session) => session.all(text, [...values, ...matching, limit]));
    return rows.map(decodeTimeout).filter(({ id }) => filter.tenant === undefined || id < end);
  };
  if (saga !== null) return by(LIST_OF_SAGA, [saga, after]);
  if (isDead) return by(LIST_DEAD, [after]);
  if (hasWallClock) return by(LIST_WALL_CLOCK, [after]);
  const found: TimeoutRow[] = [];
  await scanTable(connection, after, async (from, to) => {
    found.push(...(await by(LIST_TIMEOUTS, [from, to])));
    return found.length < limit && (filter.tenant === undefined || to < end);
  });
  return found.slice(0, limit);
}

async function calendar(
  connection: Connection,
  { tenant, destination, from, before, after, limit }: CalendarRequest,
): Promise<TimeoutRow[]> {
  // Ids are not empty, so (from, "") comes before everything that is due at `from`.
  const range = [after?.dueAt ?? from, after?.id ?? "", before];
  if (tenant !== undefined) {
    const ours = [tenantPrefix(tenant), ...range, destination ?? null];
    const found = await connection.read((session) =>
      session.all(TENANT_CALENDAR, [...ours, limit, ...ours, limit]),
    );
    return found.map(decodeTimeout);
  }
  const rows = await connection.read((session) =>
    destination === undefined
      ? session.all(CALENDAR, [...range, limit, ...range, limit])
      : session.all(CALENDAR_OF, [destination, ...range, limit, destination, ...range, limit]),
  );
  return rows.map(decodeTimeout);
}

async function count(
  connection: Connection,
  now: Instant,
  names: ReturnType<typeof namesOf>,
): Promise<TimeoutCounts> {
  const counts = { pending: 0, due: 0, leased: 0, dead: 0 };
  await scanTable(connection, names.from, async (from, last) => {
    const to = last < names.to ? last : names.to;
    const row = await connection.read((session) => session.get(COUNT_TIMEOUTS, [now, from, to]));
    const [pending, due, leased, dead] = row as readonly number[] as [number, number, number, number];
    counts.pending += pending;
    counts.due += due;
    counts.leased += leased;
    counts.dead += dead;
    return last < names.to;
  });
  return counts;
}

/** Reads the table in the order of ids, one range at a time, until `look` returns false. */
async function scanTable(
  connection: Connection,
  after: TimeoutId,
  look: (from: TimeoutId, to: TimeoutId) => Promise<boolean>,
): Promise<void> {
  for (let from = after; ; ) {
    const end = await connection.read(
      (session) => session.get(TIMEOUT_RANGE_END, [from, RANGE_ROWS - 1])?.[0] as TimeoutId | undefined,
    );
    if (!(await look(from, end ?? LAST_ID)) || end === undefined) return;
    from = end;
  }
}
