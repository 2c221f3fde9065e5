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

/** Timeouts in several homes. Each is in the home that its id names, which is that of its saga or of its key. */
export function createHomedTimeouts(
  homes: readonly HomeStore[],
  onFailed: (home: Home, error: unknown) => void,
): TimeoutStore {
  const at = (cell: Cell) => (homes[homeOf(cell, homes.length)] as HomeStore).timeouts;
  const homeOfId = (id: string) => homeOf(cellOfId(id), homes.length);
  const ofHome = (home: Home) => (homes[home] as HomeStore).timeouts;
  const all = homes.map((_, home) => home);
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
    claimDue: (request) => claimDue(homes, request, onFailed),
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

/** Each destination is asked for by itself, because each has its own limit. */
async function claimDue(
  homes: readonly HomeStore[],
  request: DueRequest,
  onFailed: (home: Home, error: unknown) => void,
): Promise<TimeoutRow[]> {
  const limit = claimLimit(request);
  const all = homes.map((_, home) => home);
  const { destinations, ...rest } = request;
  const ask = (more: Partial<DueRequest>, most: number, name?: string) =>
    fill(
      all,
      most,
      (home, share) => {
        const only = name === undefined ? {} : { destinations: [{ name, limit: share }] };
        return (homes[home] as HomeStore).timeouts.claimDue({ ...rest, ...more, ...only, limit: share });
      },
      onFailed,
    );
  if (!destinations) return (await ask({}, limit)).sort(byDue);
  const found: TimeoutRow[] = [];
  for (const { name, limit: own } of destinations) {
    const room = Math.min(own, limit - found.length);
    if (room > 0) found.push(...(await ask({}, room, name)));
  }
  return found.sort(byDue);
}
