import { refuse } from "../../core/errors.ts";
import { cellOfId, type Home, homeOf } from "../../core/home/cell.ts";
import { cellOfSaga, cellOfTimeout } from "../../core/home/cell-of-row.ts";
import { earlier } from "../../core/time.ts";
import { checkTimeout, compareIds, type NewTimeout, type TimeoutRow } from "../../core/timeout/timeout.ts";
import type { DueRequest, TimeoutStore } from "../../ports/timeouts.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { checkExtended, checkMoves, checkReleased } from "../check-instants.ts";
import { claimLimit } from "../claim-request.ts";
import { askAll, fill, mergeSorted, perHome } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import { cellOfWhich } from "./split-unit.ts";

type OnFailed = (home: Home, error: unknown) => void;

/** Timeouts in several homes. Each is in the home that its id names, which is that of its saga or of its key. */
export function createHomedTimeouts(homes: readonly HomeStore[], onFailed: OnFailed): TimeoutStore {
  let turn = 0;
  return {
    leases: true,
    ...createWrites(homes),
    ...createLists(homes, onFailed),
    claimDue(request) {
      turn = (turn + 1) % homes.length;
      return claimDue(homes, request, turn, onFailed);
    },
    async reap(request) {
      const counts = await askAll(homes, ({ timeouts }) => timeouts.reap(request), onFailed);
      return counts.reduce<number>((sum, count = 0) => sum + count, 0);
    },
    cancel(which, options) {
      const home = homeOf(cellOfWhich(which), homes.length);
      return (homes[home] as HomeStore).timeouts.cancel(which, options);
    },
  };
}

/** Calls that take ids. */
function createWrites(
  homes: readonly HomeStore[],
): Pick<TimeoutStore, "insert" | "remove" | "release" | "extend" | "requeue" | "reschedule" | "load"> {
  const each = <Item, Answer>(
    items: readonly Item[],
    field: string,
    idOf: (item: Item) => string,
    call: (store: TimeoutStore, own: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<Answer[]> => {
    checkBatch(items, field);
    const homeOfItem = (item: Item) => homeOf(cellOfId(idOf(item)), homes.length);
    return perHome(items, homeOfItem, (home, own) => call((homes[home] as HomeStore).timeouts, own));
  };
  const idOf = ({ id }: { readonly id: string }) => id;
  return {
    async insert(timeouts, options) {
      for (const timeout of timeouts) checkTimeout(timeout);
      for (const timeout of timeouts) checkHome(timeout, homes.length);
      return each(timeouts, "timeouts", idOf, (store, own) => store.insert(own, options));
    },
    remove: async (leased, options) =>
      each(leased, "leased", idOf, (store, own) => store.remove(own, options)),
    async release(released, options) {
      checkReleased(released);
      return each(released, "released", idOf, (store, own) => store.release(own, options));
    },
    async extend(extended, options) {
      checkExtended(extended);
      return each(extended, "extended", idOf, (store, own) => store.extend(own, options));
    },
    async requeue(ids, options) {
      const ones = each(ids, "ids", String, async (store, own) =>
        onesOf(await store.requeue(own, options), own),
      );
      return (await ones).reduce((a, b) => a + b, 0);
    },
    async reschedule(moves, options) {
      checkMoves(moves);
      const ones = each(moves, "moves", idOf, async (store, own) =>
        onesOf(await store.reschedule(own, options), own),
      );
      return (await ones).reduce((a, b) => a + b, 0);
    },
    load: async (ids) => each(ids, "ids", String, (store, own) => store.load(own)),
  };
}

/** A count as one number per item, so that the sum over all homes is the count over all items. */
function onesOf(count: number, items: readonly unknown[]): number[] {
  return items.map((_, index) => (index < count ? 1 : 0));
}

function createLists(
  homes: readonly HomeStore[],
  onFailed: OnFailed,
): Pick<TimeoutStore, "calendar" | "list" | "nextDueAt" | "count"> {
  return {
    async calendar(request) {
      checkLimit(request.limit);
      const lists = await Promise.all(homes.map(({ timeouts }) => timeouts.calendar(request)));
      return mergeSorted(lists, byDue, request.limit);
    },
    async list(filter, after, limit) {
      checkLimit(limit);
      const asked = filter.saga ? [homes[homeOf(cellOfSaga(filter.saga), homes.length)] as HomeStore] : homes;
      const lists = await Promise.all(asked.map(({ timeouts }) => timeouts.list(filter, after, limit)));
      return mergeSorted(lists, (a, b) => compareIds(a.id, b.id), limit);
    },
    async nextDueAt(destinations) {
      const nexts = await askAll(homes, ({ timeouts }) => timeouts.nextDueAt(destinations), onFailed);
      return nexts.map((next) => next ?? null).reduce(earlier, null);
    },
    async count(request) {
      const counts = await Promise.all(homes.map(({ timeouts }) => timeouts.count(request)));
      return counts.reduce((a, b) => ({
        pending: a.pending + b.pending,
        due: a.due + b.due,
        leased: a.leased + b.leased,
        dead: a.dead + b.dead,
      }));
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
    return (await fill(order, limit, ask, { onFailed })).sort(byDue);
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
