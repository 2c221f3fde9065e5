import { refuse } from "../../core/errors.ts";
import { namesOf, tenantOf } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import {
  checkTimeout,
  compareIds,
  type LeaseLoss,
  sagaText,
  type TimeoutRow,
} from "../../core/timeout/timeout.ts";
import type {
  CalendarRequest,
  DueRequest,
  LeaseAnswer,
  TimeoutCounts,
  TimeoutFilter,
  TimeoutStore,
} from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import { batchesOf, noText, textOfTimeout } from "../sql/batches.ts";
import { byDue, decodeTimeout } from "../sql/timeout-codec.ts";
import type { Packed, Reader, Unpacked } from "./codec.ts";
import { newTimeoutValues, whichValues } from "./commit.ts";
import { CALL_SIZE, type Home, ITEMS_PER_CALL } from "./home.ts";
import type { FunctionName } from "./lua/library.ts";

/** In the order of lua/timeouts.ts. */
const LOSSES: readonly LeaseLoss[] = ["gone", "unleased", "stolen", "expired"];

export function createTimeoutStore(home: Home): TimeoutStore {
  return {
    leases: true,
    ...createWrites(home),
    async claimDue(request) {
      home.assertOpen();
      return claimDue(home, request, claimLimit(request));
    },
    async reap({ now }) {
      let freed = 0;
      for (let count = ITEMS_PER_CALL; count === ITEMS_PER_CALL; freed += count) {
        const reader = await home.call("reap", [now, ITEMS_PER_CALL]);
        count = reader.read() as number;
      }
      return freed;
    },
    async cancel(which, { now, tx }) {
      refuseTx(tx);
      const reader = await home.write("cancelTimeouts", [now, whichValues(which)]);
      return { pending: reader.read() as number, leased: reader.read() as number };
    },
    async load(ids) {
      home.assertOpen();
      checkBatch(ids, "ids");
      const found: (TimeoutRow | null)[] = [];
      for (const batch of batchesOf(ids, CALL_SIZE, noText)) {
        const rows = (await home.call("loadTimeouts", batch)).read() as (Unpacked[] | null)[];
        for (const [index, row] of rows.entries()) found.push(row && timeoutOf(batch[index] as string, row));
      }
      return found;
    },
    async calendar(request) {
      home.assertOpen();
      checkLimit(request.limit);
      return calendar(home, request);
    },
    async list(filter, after, limit) {
      home.assertOpen();
      checkLimit(limit);
      return list(home, filter, after, limit);
    },
    async nextDueAt(destinations) {
      return (await home.call("nextTimeout", destinations ?? null)).read() as Instant | null;
    },
    count: ({ now, tenant }) => count(home, now, tenant),
  };
}

/** The calls that take many items and answer for each. */
function createWrites(
  home: Home,
): Pick<TimeoutStore, "insert" | "remove" | "release" | "extend" | "requeue" | "reschedule"> {
  const each = async (
    name: FunctionName,
    head: readonly Packed[],
    items: readonly Packed[],
    field: string,
  ) => {
    home.assertOpen();
    checkBatch(items, field);
    const answers: Unpacked[] = [];
    for (const batch of batchesOf(items, CALL_SIZE, noText)) {
      const answer = (await home.write(name, [...head, batch])).read();
      if (Array.isArray(answer)) for (const one of answer) answers.push(one);
      else answers.push(answer);
    }
    return answers;
  };
  const sum = (answers: readonly Unpacked[]) => (answers as number[]).reduce((total, one) => total + one, 0);
  return {
    async insert(timeouts, { now, tx }) {
      refuseTx(tx);
      for (const timeout of timeouts) checkTimeout(timeout);
      checkBatch(timeouts, "timeouts");
      const answers: Unpacked[] = [];
      for (const batch of batchesOf(timeouts, CALL_SIZE, textOfTimeout))
        answers.push(...(await each("insertTimeouts", [now], batch.map(newTimeoutValues), "timeouts")));
      home.assertOpen();
      return answers.map((isNew) => (isNew === true ? "created" : "exists"));
    },
    async remove(leased, { now }) {
      const items = leased.map(({ id, owner }): Packed => [id, owner]);
      return (await each("changeLeases", ["d", now], items, "leased")).map(answerOf);
    },
    async release(released, { now }) {
      checkReleased(released);
      const items = released.map(
        ({ id, owner, dueAt, error, isDead }): Packed => [id, owner, dueAt, error, isDead],
      );
      return (await each("changeLeases", ["r", now], items, "released")).map(answerOf);
    },
    async extend(extended, { now }) {
      checkExtended(extended);
      const items = extended.map(({ id, owner, leaseUntil }): Packed => [id, owner, leaseUntil]);
      return (await each("changeLeases", ["x", now], items, "extended")).map(answerOf);
    },
    async requeue(ids, { now }) {
      return sum(
        await each(
          "moveTimeouts",
          ["q", now],
          ids.map((id) => [id]),
          "ids",
        ),
      );
    },
    async reschedule(moves, { now }) {
      checkMoves(moves);
      return sum(
        await each(
          "moveTimeouts",
          ["m", now],
          moves.map(({ id, from, to }) => [id, from, to]),
          "moves",
        ),
      );
    },
  };
}

function answerOf(answer: Unpacked): LeaseAnswer {
  return answer === 0 ? "ok" : (LOSSES[(answer as number) - 1] as LeaseLoss);
}

function timeoutOf(id: string, values: readonly Unpacked[]): TimeoutRow {
  return decodeTimeout([id, ...values]);
}

function readTimeouts(reader: Reader): TimeoutRow[] {
  const rows: TimeoutRow[] = [];
  while (!reader.isAtEnd) {
    const id = reader.read() as string;
    rows.push(timeoutOf(id, reader.read() as Unpacked[]));
  }
  return rows;
}

/** In calls of a bounded number of rows. Each takes the first that are due, so the answers follow each other in order. */
async function claimDue(home: Home, request: DueRequest, limit: number): Promise<TimeoutRow[]> {
  const { now, leaseUntil, owner } = request;
  const claimed: TimeoutRow[] = [];
  const left =
    request.destinations && new Map(request.destinations.map(({ name, limit: most }) => [name, most]));
  while (claimed.length < limit) {
    const most = Math.min(limit - claimed.length, ITEMS_PER_CALL);
    const destinations = left && [...left].filter(([, count]) => count > 0).flat();
    if (destinations?.length === 0) break;
    const rows = readTimeouts(await home.call("claimTimeouts", [now, leaseUntil, owner, most, destinations]));
    for (const row of rows) {
      claimed.push(row);
      if (left) left.set(row.destination, (left.get(row.destination) ?? 0) - 1);
    }
    // A lease that has already expired would be found again. An empty answer is the end in every case.
    if (rows.length === 0 || leaseUntil <= now || rows.length < most) break;
  }
  return claimed;
}

/** Reads the lines from the start of the page on, and every lease. */
async function calendar(home: Home, request: CalendarRequest): Promise<TimeoutRow[]> {
  const { tenant, destination, from, before, after, limit } = request;
  const names = namesOf(tenant);
  const start = after ?? { dueAt: from, id: "" };
  const isWanted = (row: TimeoutRow) =>
    row.dueAt >= from &&
    row.dueAt < before &&
    (row.dueAt - start.dueAt || compareIds(row.id, start.id)) > 0 &&
    row.id >= names.from &&
    row.id < names.to &&
    (destination === undefined || row.destination === destination);
  const found: TimeoutRow[] = [];
  const first = Math.max(from, start.dueAt);
  for (let offset = 0; found.length < limit && first < before; offset += ITEMS_PER_CALL) {
    const reader = await home.call("dueTimeouts", [destination, first, before, offset, ITEMS_PER_CALL]);
    const rows = readTimeouts(reader);
    for (const row of rows) if (isWanted(row)) found.push(row);
    if (rows.length < ITEMS_PER_CALL) break;
  }
  for (let offset = 0; ; offset += ITEMS_PER_CALL) {
    const rows = readTimeouts(await home.call("leasedTimeouts", [offset, ITEMS_PER_CALL]));
    for (const row of rows) if (isWanted(row)) found.push(row);
    if (rows.length < ITEMS_PER_CALL) break;
  }
  return found.sort(byDue).slice(0, limit);
}

/** A walk over the ids of a saga, or of all: there is no index of what else a filter asks for. */
async function list(
  home: Home,
  filter: TimeoutFilter,
  after: string | null,
  limit: number,
): Promise<TimeoutRow[]> {
  const { from, to } = namesOf(filter.tenant);
  const found: TimeoutRow[] = [];
  const end = filter.tenant === undefined ? null : to;
  const saga = filter.saga ? sagaText(filter.saga) : null;
  // Sagas ask for the first of theirs again and again.
  let asked = saga === null ? ITEMS_PER_CALL : Math.min(limit, ITEMS_PER_CALL);
  for (let cursor = after ?? from; ; ) {
    const rows = readTimeouts(await home.call("listTimeouts", [cursor, end, asked, saga]));
    for (const row of rows) {
      if (matches(row, filter)) found.push(row);
      if (found.length === limit) return found;
    }
    if (rows.length < asked) return found;
    cursor = (rows.at(-1) as TimeoutRow).id;
    asked = ITEMS_PER_CALL;
  }
}

function matches(row: TimeoutRow, filter: TimeoutFilter): boolean {
  if (filter.destination !== undefined && row.destination !== filter.destination) return false;
  if (filter.saga && (row.saga === null || sagaText(row.saga) !== sagaText(filter.saga))) return false;
  if (filter.isDead !== undefined && (row.deadAt !== null) !== filter.isDead) return false;
  return !filter.hasWallClock || row.wallClock !== null;
}

/** Counts by index, except for the due ones if several tenants have timeouts: then the due ones are read. */
async function count(home: Home, now: Instant, tenant: string | undefined): Promise<TimeoutCounts> {
  const { from, to } = namesOf(tenant);
  const reader = await home.call("countTimeouts", [now, from, to]);
  const counts = Array.from({ length: 5 }, () => reader.read());
  const [all, leased, dead, inLine, everybody] = counts as [number, number, number, number, number];
  const pending = all - leased - dead;
  if (all === everybody) return { pending, due: inLine, leased, dead };
  let due = 0;
  for (let offset = 0; offset < inLine; offset += ITEMS_PER_CALL) {
    const rows = readTimeouts(await home.call("dueTimeouts", [null, 0, now + 1, offset, ITEMS_PER_CALL]));
    due += rows.filter(({ id }) => tenantOf(id) === tenant).length;
  }
  return { pending, due, leased, dead };
}

/** A timeout that stays after the rollback of its transaction would be a surprise. */
function refuseTx(tx: unknown): void {
  if (tx === undefined) return;
  const fix = "a Redis store has no transactions to join: leave it out";
  throw refuse("invalid_option", "options.tx", typeof tx, fix);
}
