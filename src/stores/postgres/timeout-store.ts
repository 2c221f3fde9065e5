import { namesOf } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import { checkTimeout, sagaText, type TimeoutRow } from "../../core/timeout/timeout.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import type { CalendarRequest, DueRequest, TimeoutStore } from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import { byDue, decodeTimeout } from "../sql/timeout-codec.ts";
import { numberArray, textArray } from "./array-literal.ts";
import { type ConnectionGroup, withRepeats } from "./connection.ts";
import type { Connections } from "./connections.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import type { Runner } from "./session.ts";
import {
  CALENDAR,
  CALENDAR_OF,
  CLAIM_DUE,
  CLAIM_DUE_OF,
  COUNT_TIMEOUTS,
  LIST_TIMEOUTS,
  LOAD_TIMEOUTS,
  NEXT_DUE,
  NEXT_DUE_OF,
  REAP,
  REQUEUE,
  RESCHEDULE,
  TENANT_CALENDAR,
} from "./timeout-statements.ts";
import type { Transactions } from "./transactions.ts";
import {
  cancelTimeouts,
  extendLeases,
  insertTimeouts,
  releaseTimeouts,
  removeTimeouts,
} from "./write-timeouts.ts";

/**
 * Repeats single statements that the server rolled back, never whole calls: a repeated call would take its own first
 * half for another caller's writes.
 */
function repeating(connections: ConnectionGroup, repeatable?: ReadonlySet<string>): Runner {
  return { run: (statement, values) => withRepeats(() => connections.run(statement, values), repeatable) };
}

/**
 * Also repeats unique violations: two inserts may race for an id that callers chose. Repeated, one of them finds it
 * known.
 */
const REPEATABLE_INSERTS: ReadonlySet<string> = new Set(["40001", "40P01", "23505"]);

export function createTimeoutStore(
  connections: Connections,
  channel: HintChannel,
  transactions: Transactions,
): TimeoutStore {
  return {
    leases: true,
    async insert(timeouts, { now, tx }) {
      checkBatch(timeouts, "timeouts");
      for (const timeout of timeouts) checkTimeout(timeout);
      return transactions.run(
        tx,
        (session, hints) => insertTimeouts(session, timeouts, now, hints),
        (hints) => insertTimeouts(repeating(connections.enqueue, REPEATABLE_INSERTS), timeouts, now, hints),
      );
    },
    async claimDue(request) {
      return claimDue(connections.relaxed, request, claimLimit(request));
    },
    async remove(leased, { now }) {
      checkBatch(leased, "leased");
      channel.assertOpen();
      return removeTimeouts(repeating(connections.write), leased, now);
    },
    async release(released, { now }) {
      checkBatch(released, "released");
      checkReleased(released);
      channel.assertOpen();
      const hints = new HintBatch();
      const answers = await releaseTimeouts(repeating(connections.write), released, now, hints);
      channel.notify(hints);
      return answers;
    },
    async extend(extended, { now }) {
      checkBatch(extended, "extended");
      checkExtended(extended);
      channel.assertOpen();
      return extendLeases(repeating(connections.write), extended, now);
    },
    reap: ({ now }) => reap(connections.write, now),
    cancel: (which, { now, tx }) =>
      transactions.run(
        tx,
        (session) => cancelTimeouts(session, which, now),
        () => cancelTimeouts(repeating(connections.write), which, now),
      ),
    ...createOperations(connections, channel),
  };
}

function createOperations(
  connections: Connections,
  channel: HintChannel,
): Pick<TimeoutStore, "requeue" | "reschedule" | "load" | "calendar" | "list" | "nextDueAt" | "count"> {
  return {
    async requeue(ids, { now }) {
      checkBatch(ids, "ids");
      channel.assertOpen();
      const rows = await withRepeats(() => connections.write.run(REQUEUE, [textArray(ids, (id) => id), now]));
      const hints = new HintBatch();
      if (rows.length > 0) hints.timeout(now, now);
      channel.notify(hints);
      return rows.length;
    },
    async reschedule(moves, { now }) {
      checkBatch(moves, "moves");
      checkMoves(moves);
      channel.assertOpen();
      const values = [
        textArray(moves, ({ id }) => id),
        numberArray(moves, ({ from }) => from),
        numberArray(moves, ({ to }) => to),
      ];
      const rows = await withRepeats(() => connections.write.run(RESCHEDULE, values));
      const hints = new HintBatch();
      for (const { to } of moves) hints.timeout(to, now);
      channel.notify(hints);
      return rows.length;
    },
    async load(ids) {
      checkBatch(ids, "ids");
      const rows = await connections.inspect.run(LOAD_TIMEOUTS, [textArray(ids, (id) => id)]);
      const found = new Map(rows.map(decodeTimeout).map((row) => [row.id, row]));
      return ids.map((id) => found.get(id) ?? null);
    },
    async calendar(request) {
      checkLimit(request.limit);
      return (await readCalendar(connections.inspect, request)).map(decodeTimeout);
    },
    async list({ tenant, destination, saga, isDead, hasWallClock }, after, limit) {
      checkLimit(limit);
      const names = namesOf(tenant);
      const rows = await connections.inspect.run(LIST_TIMEOUTS, [
        destination ?? null,
        saga ? sagaText(saga) : null,
        isDead === undefined ? null : Number(isDead),
        hasWallClock ? 1 : null,
        after ?? names.from,
        limit,
        tenant === undefined ? null : names.to,
      ]);
      return rows.map(decodeTimeout);
    },
    async nextDueAt(destinations) {
      const rows = destinations
        ? await connections.relaxed.run(NEXT_DUE_OF, [textArray(destinations, (name) => name)])
        : await connections.relaxed.run(NEXT_DUE);
      return rows[0]?.[0] as Instant | null;
    },
    async count({ now, tenant }) {
      const { from, to } = namesOf(tenant);
      const [row] = await connections.inspect.run(COUNT_TIMEOUTS, [now, from, to]);
      const [pending, due, leased, dead] = row as readonly number[] as [number, number, number, number];
      return { pending, due, leased, dead };
    },
  };
}

function readCalendar(
  runner: Runner,
  { tenant, destination, from, before, after, limit }: CalendarRequest,
): Promise<SqlRow[]> {
  // Ids are not empty, so (from, "") comes before everything that is due at `from`.
  const range = [after?.dueAt ?? from, after?.id ?? "", before, limit];
  if (tenant !== undefined) return runner.run(TENANT_CALENDAR, [...range, tenant, destination ?? null]);
  if (destination === undefined) return runner.run(CALENDAR, range);
  return runner.run(CALENDAR_OF, [...range, destination]);
}

async function claimDue(
  connections: ConnectionGroup,
  request: DueRequest,
  limit: number,
): Promise<TimeoutRow[]> {
  const { now, leaseUntil, owner, destinations } = request;
  const values = [now, leaseUntil, owner, limit];
  const rows = await withRepeats(() =>
    destinations
      ? connections.run(CLAIM_DUE_OF, [
          ...values,
          textArray(destinations, ({ name }) => name),
          numberArray(destinations, (each) => each.limit),
        ])
      : connections.run(CLAIM_DUE, values),
  );
  return rows.map(decodeTimeout).sort(byDue);
}

async function reap(connections: ConnectionGroup, now: Instant): Promise<number> {
  for (let reaped = 0; ; ) {
    const rows = await withRepeats(() => connections.run(REAP, [now, BATCH_LIMIT]));
    reaped += rows.length;
    if (rows.length < BATCH_LIMIT) return reaped;
  }
}
