import { refuse } from "../../core/errors.ts";
import { type Cell, cellOfId, type Home, homeOf } from "../../core/home/cell.ts";
import { cellOfSaga, cellOfTimeout } from "../../core/home/cell-of-row.ts";
import { earlier } from "../../core/time.ts";
import { checkTimeout, compareIds, type NewTimeout, type TimeoutRow } from "../../core/timeout/timeout.ts";
import type { DueRequest, TimeoutStore } from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import { fill, mergeSorted, perHome } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import { cellOfWhich } from "./split-unit.ts";

type OnFailed = (home: Home, error: unknown) => void;

/** Timeouts in several homes. Each is in the home that its id names, which is that of its saga or of its key. */
export function createHomedTimeouts(homes: readonly HomeStore[], onFailed: OnFailed): TimeoutStore {
  const at = (cell: Cell) => (homes[homeOf(cell, homes.length)] as HomeStore).timeouts;
  const homeOfId = (id: string) => homeOf(cellOfId(id), homes.length);
  const ofHome = (home: Home) => (homes[home] as HomeStore).timeouts;
  const all = homes.map((_, home) => home);
  let turn = 0;
  const sum = async (call: (store: TimeoutStore) => Promise<number>) =>
    (await Promise.all(all.map((home) => call(ofHome(home))))).reduce((a, b) => a + b, 0);
  return {
    leases: true,
    async insert(timeouts, options) {
      checkBatch(timeouts, "timeouts");
      for (const timeout of timeouts) checkTimeout(timeout);
      for (const timeout of timeouts) checkHome(timeout, homes.length);
      return perHome(
        timeouts,
        ({ id }) => homeOfId(id),
        (home, own) => ofHome(home).insert(own, options),
      );
    },
    claimDue(request) {
      turn = (turn + 1) % homes.length;
      return claimDue(homes, request, turn, onFailed);
    },
    async remove(leased, options) {
      checkBatch(leased, "leased");
      return perHome(
        leased,
        ({ id }) => homeOfId(id),
        (home, own) => ofHome(home).remove(own, options),
      );
    },
    async release(released, options) {
      checkBatch(released, "released");
      checkReleased(released);
      return perHome(
        released,
        ({ id }) => homeOfId(id),
        (home, own) => ofHome(home).release(own, options),
      );
    },
    async extend(extended, options) {
      checkBatch(extended, "extended");
      checkExtended(extended);
      return perHome(
        extended,
        ({ id }) => homeOfId(id),
        (home, own) => ofHome(home).extend(own, options),
      );
    },
    reap: (request) => sum((store) => store.reap(request)),
    cancel: (which, options) => at(cellOfWhich(which)).cancel(which, options),
    async requeue(ids, options) {
      checkBatch(ids, "ids");
      const counts = await perHome(ids, homeOfId, async (home, own) => {
        const count = await ofHome(home).requeue(own, options);
        return own.map((_, index) => (index < count ? 1 : 0));
      });
      return counts.filter((count) => count === 1).length;
    },
    async reschedule(moves, options) {
      checkBatch(moves, "moves");
      checkMoves(moves);
      const counts = await perHome(
        moves,
        ({ id }) => homeOfId(id),
        async (home, own) => {
          const count = await ofHome(home).reschedule(own, options);
          return own.map((_, index) => (index < count ? 1 : 0));
        },
      );
      return counts.filter((count) => count === 1).length;
    },
    async load(ids) {
      checkBatch(ids, "ids");
      return perHome(ids, homeOfId, (home, own) => ofHome(home).load(own));
    },
    async calendar(request) {
      checkLimit(request.limit);
      const lists = await Promise.all(all.map((home) => ofHome(home).calendar(request)));
      return mergeSorted(lists, byDue, request.limit);
    },
    async list(filter, after, limit) {
      checkLimit(limit);
      if (filter.saga) return at(cellOfSaga(filter.saga)).list(filter, after, limit);
      const lists = await Promise.all(all.map((home) => ofHome(home).list(filter, after, limit)));
      return mergeSorted(lists, (a, b) => compareIds(a.id, b.id), limit);
    },
    async nextDueAt(destinations) {
      const nexts = await Promise.all(all.map((home) => ofHome(home).nextDueAt(destinations)));
      return nexts.reduce(earlier, null);
    },
    async count(request) {
      const counts = await Promise.all(all.map((home) => ofHome(home).count(request)));
      const total = { pending: 0, due: 0, leased: 0, dead: 0 };
      for (const { pending, due, leased, dead } of counts) {
        total.pending += pending;
        total.due += due;
        total.leased += leased;
        total.dead += dead;
      }
      return total;
    },
  };
}

function byDue(a: TimeoutRow, b: TimeoutRow): number {
  return a.dueAt - b.dueAt || compareIds(a.id, b.id);
}

/** Refuses an id in another home than its saga or key: nothing would find it. */
function checkHome(timeout: NewTimeout, homes: number): void {
  const cell = cellOfTimeout(timeout);
  if (cell === undefined || homeOf(cell, homes) === homeOf(cellOfId(timeout.id), homes)) return;
  const fix =
    "leave out the id: on a store with several homes, the id of a timeout with a key or a saga names their home";
  throw refuse("invalid_option", "timeout.id", timeout.id, fix);
}

/**
 * With destinations, homes are asked one after the other for what is missing, because each destination has its own limit.
 * The call that comes next begins with another home.
 */
async function claimDue(
  homes: readonly HomeStore[],
  request: DueRequest,
  first: Home,
  onFailed: OnFailed,
): Promise<TimeoutRow[]> {
  const limit = claimLimit(request);
  const order = homes.map((_, index) => (first + index) % homes.length);
  const { destinations } = request;
  if (!destinations) {
    const ask = (home: Home, share: number) =>
      (homes[home] as HomeStore).timeouts.claimDue({ ...request, limit: share });
    return (await fill(order, limit, ask, onFailed)).sort(byDue);
  }
  const found: TimeoutRow[] = [];
  const left = new Map(destinations.map(({ name, limit: most }) => [name, most]));
  let failed = 0;
  for (const home of order) {
    const open = [...left].flatMap(([name, most]) => (most > 0 ? [{ name, limit: most }] : []));
    const room = limit - found.length;
    if (room === 0 || open.length === 0) break;
    try {
      const { timeouts } = homes[home] as HomeStore;
      const rows = await timeouts.claimDue({ ...request, limit: room, destinations: open });
      found.push(...rows);
      for (const { destination } of rows) left.set(destination, (left.get(destination) ?? 0) - 1);
    } catch (error) {
      failed += 1;
      onFailed(home, error);
      if (failed === homes.length) throw error;
    }
  }
  return found.sort(byDue);
}
