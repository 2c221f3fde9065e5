import { type Cell, cellOfId, withCell } from "../../core/home/cell.ts";
import { cellOfTimeout } from "../../core/home/cell-of-row.ts";
import type { NewTimeout, TimeoutId, TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Effect, Guard, Store, Unit } from "../../ports/store.ts";
import type { TimeoutStore, Which } from "../../ports/timeouts.ts";
import type { OpenedStore } from "./test-bed.ts";

/*
 * Cases are written for one home. In a store with several, a case runs with ids that engines would give: a timeout with
 * a key or a saga gets an id in their home, and a case whose units join several rows says in which cell they are.
 */

/** A store on new data as a case sees it. */
export function homedStore(opened: OpenedStore, home: Cell | undefined): OpenedStore {
  if (opened.store.capabilities.homes === 1) return opened;
  const ids: StoredIds = new Map();
  const { another, reopen } = opened;
  const view = (store: Store) => withHomedTimeouts(store, ids, home);
  return {
    ...opened,
    store: view(opened.store),
    ...(another && { another: async () => view(await another()) }),
    ...(reopen && { reopen: async () => view(await reopen()) }),
  };
}

/** The stored ids of a case's timeouts, for all its handles. */
type StoredIds = Map<TimeoutId, TimeoutId>;

/** A call on a list, with another item for each. */
const each =
  <Item, Options, Answer>(
    call: (items: readonly Item[], options: Options) => Answer,
    change: (item: Item) => Item,
  ) =>
  (items: readonly Item[], options: Options): Answer =>
    call(items.map(change), options);

/** The store as a case sees it: with its own ids of timeouts. */
function withHomedTimeouts(store: Store, ids: StoredIds, home: Cell | undefined): Store {
  const view = new HomedIds(ids, home);
  return {
    ...store,
    timeouts: homedTimeouts(store.timeouts, view),
    commit: each(store.commit.bind(store), (unit) => view.unit(unit)),
  };
}

function homedTimeouts(timeouts: TimeoutStore, view: HomedIds): TimeoutStore {
  const rows = async (found: Promise<TimeoutRow[]>) => (await found).map((row) => view.row(row));
  return {
    leases: timeouts.leases,
    insert: each(timeouts.insert.bind(timeouts), (one) => view.newTimeout(one)),
    claimDue: (request) => rows(timeouts.claimDue(request)),
    remove: each(timeouts.remove.bind(timeouts), (one) => view.withId(one)),
    release: each(timeouts.release.bind(timeouts), (one) => view.withId(one)),
    extend: each(timeouts.extend.bind(timeouts), (one) => view.withId(one)),
    reap: (request) => timeouts.reap(request),
    cancel: (which, options) => timeouts.cancel(view.which(which), options),
    requeue: each(timeouts.requeue.bind(timeouts), (id) => view.id(id)),
    reschedule: each(timeouts.reschedule.bind(timeouts), (one) => view.withId(one)),
    async load(ids) {
      const found = await timeouts.load(ids.map((id) => view.id(id)));
      return found.map((row) => row && view.row(row));
    },
    calendar: ({ after, ...request }) =>
      rows(timeouts.calendar({ ...request, after: after && view.withId(after) })),
    list: (filter, after, limit) =>
      rows(timeouts.list(filter, after === null ? null : view.id(after), limit)),
    nextDueAt: (destinations) => timeouts.nextDueAt(destinations),
    count: (request) => timeouts.count(request),
  };
}

class HomedIds {
  readonly #ids: StoredIds;
  readonly #home: Cell | undefined;

  constructor(ids: StoredIds, home: Cell | undefined) {
    this.#ids = ids;
    this.#home = home;
  }

  id(id: TimeoutId): TimeoutId {
    return this.#ids.get(id) ?? (this.#home === undefined ? id : withCell(id, this.#home));
  }

  withId<Item extends { readonly id: TimeoutId }>(item: Item): Item {
    return { ...item, id: this.id(item.id) };
  }

  newTimeout(timeout: NewTimeout): NewTimeout {
    const { id } = timeout;
    const cell = cellOfTimeout(timeout) ?? this.#home;
    if (typeof id !== "string" || id === "" || this.#ids.has(id)) return this.withId(timeout);
    if (cell !== undefined && cell !== cellOfId(id)) this.#ids.set(id, withCell(id, cell));
    return this.withId(timeout);
  }

  row(row: TimeoutRow): TimeoutRow {
    return { ...row, id: row.id.replace(/~[0-9a-f]{3}$/, "") };
  }

  which(which: Which): Which {
    return "id" in which ? this.withId(which) : which;
  }

  unit({ when, effects, ...unit }: Unit): Unit {
    return {
      ...unit,
      ...(when && { when: when.map((guard) => this.#guard(guard)) }),
      ...(effects && { effects: effects.map((effect) => this.#effect(effect)) }),
    };
  }

  #guard(guard: Guard): Guard {
    if ("timeout" in guard) return { ...guard, timeout: this.id(guard.timeout) };
    return "idle" in guard ? { ...guard, idle: this.id(guard.idle) } : guard;
  }

  #effect(effect: Effect): Effect {
    if ("request" in effect) return { request: this.newTimeout(effect.request) };
    if ("revoke" in effect) return { revoke: this.which(effect.revoke) };
    return "remove" in effect ? { remove: this.id(effect.remove) } : effect;
  }
}
