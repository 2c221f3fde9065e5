import { DueHeap, type Slotted } from "../../core/due-heap.ts";
import { namesOf, tenantOf } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import {
  compareIds,
  destinationScope,
  leaseLoss,
  type NewTimeout,
  type SagaKey,
  sagaScope,
  sagaText,
  scopeOf,
  type TimeoutId,
  type TimeoutRow,
} from "../../core/timeout/timeout.ts";
import { decodeHeaders, encodeHeaders } from "../../core/timeout/timeout-headers.ts";
import type { IdleGuard } from "../../ports/store.ts";
import type {
  CalendarRequest,
  DueRequest,
  ExtendedLease,
  LeaseAnswer,
  LeasedTimeout,
  Move,
  ReleasedTimeout,
  Revoked,
  TimeoutCounts,
  TimeoutFilter,
  Which,
} from "../../ports/timeouts.ts";
import { SortedList } from "./sorted-list.ts";

/** Documents are stored as text, so that no caller can change them through an object that it passed or received. */
interface TimeoutEntry extends Slotted {
  row: Omit<TimeoutRow, "headers" | "wallClock">;
  readonly headers: string | null;
  readonly wallClock: string | null;
}

const NOTHING: Revoked = { pending: 0, leased: 0 };

export class TimeoutTable {
  readonly #entries = new Map<TimeoutId, TimeoutEntry>();
  readonly #byId = new SortedList<TimeoutEntry>((a, b) => compareIds(a.row.id, b.row.id));
  readonly #byKey = new Map<string, TimeoutEntry>();
  readonly #bySaga = new Map<string, Set<TimeoutEntry>>();
  /** Live and not leased, in the order in which they are claimed. */
  readonly #free = new SortedList<TimeoutEntry>(compareDue);
  readonly #freeOf = new Map<string, SortedList<TimeoutEntry>>();
  readonly #leased = new DueHeap<TimeoutEntry>();

  nextDueAt(destinations?: readonly string[]): Instant | null {
    if (!destinations) {
      const [first] = this.#free.from(() => false);
      return earlier(first?.row.dueAt ?? null, this.#leased.nextAt);
    }
    let nextAt: Instant | null = null;
    for (const name of destinations) {
      const [first] = this.#freeOf.get(name)?.from(() => false) ?? [];
      nextAt = earlier(nextAt, first?.row.dueAt ?? null);
    }
    for (const { row } of this.#leased.items) {
      if (destinations.includes(row.destination)) nextAt = earlier(nextAt, row.leaseUntil);
    }
    return nextAt;
  }

  isLeasedBy(id: TimeoutId, owner: string, now: Instant): boolean {
    return leaseLoss(this.#entries.get(id)?.row, owner, now) === null;
  }

  isIdle({ idle, dueAt, isDead }: IdleGuard): boolean {
    const row = this.#entries.get(idle)?.row;
    return row?.owner === null && row.dueAt === dueAt && (row.deadAt !== null) === isDead;
  }

  load(id: TimeoutId): TimeoutRow | null {
    const entry = this.#entries.get(id);
    return entry ? rowOf(entry) : null;
  }

  calendar({ tenant, destination, from, before, after, limit }: CalendarRequest): TimeoutRow[] {
    const names = namesOf(tenant);
    const isOurs = ({ row }: TimeoutEntry) => row.id >= names.from && row.id < names.to;
    const start = after ?? { dueAt: from, id: "" };
    const isBefore = ({ row }: TimeoutEntry) =>
      row.dueAt < from || (row.dueAt - start.dueAt || compareIds(row.id, start.id)) <= 0;
    const found: TimeoutEntry[] = [];
    const free = destination === undefined ? this.#free : this.#freeOf.get(destination);
    for (const entry of free?.from(isBefore) ?? []) {
      if (found.length === limit || entry.row.dueAt >= before) break;
      if (isOurs(entry)) found.push(entry);
    }
    const leased = this.#leased.items.filter(
      (entry) =>
        !isBefore(entry) &&
        isOurs(entry) &&
        entry.row.dueAt < before &&
        (destination === undefined || entry.row.destination === destination),
    );
    return [...found, ...leased].sort(compareDue).slice(0, limit).map(rowOf);
  }

  insert(timeout: NewTimeout): "created" | "exists" {
    if (this.#entries.has(timeout.id)) return "exists";
    const { id, destination, dueAt, payload, headers, key, saga, wallClock } = timeout;
    const replaced = key === undefined ? undefined : this.#byKey.get(keyText(scopeOf(timeout), key));
    if (replaced) this.#delete(replaced);
    const entry: TimeoutEntry = {
      row: {
        id,
        destination,
        dueAt,
        payload: payload ?? null,
        key: key ?? null,
        saga: saga ? [saga[0], saga[1]] : null,
        owner: null,
        leaseUntil: null,
        tries: 0,
        deadAt: null,
        error: null,
      },
      headers: headers ? encodeHeaders(headers) : null,
      wallClock: wallClock === undefined ? null : JSON.stringify(wallClock),
      slot: -1,
    };
    this.#entries.set(id, entry);
    this.#byId.add(entry);
    if (key !== undefined) this.#byKey.set(keyText(scopeOf(timeout), key), entry);
    if (saga) {
      const text = sagaText(saga);
      this.#bySaga.set(text, (this.#bySaga.get(text) ?? new Set()).add(entry));
    }
    this.#place(entry);
    return "created";
  }

  claim({ now, leaseUntil, owner, destinations }: DueRequest, limit: number): TimeoutRow[] {
    const expired = this.#leased.items.filter(
      ({ row }) => (row.leaseUntil as Instant) <= now && row.dueAt <= now,
    );
    const sources = destinations
      ? destinations.map(({ name, limit: most }) => ({ list: this.#freeOf.get(name), name, most }))
      : [{ list: this.#free, name: undefined, most: limit }];
    const candidates = sources.flatMap(({ list, name, most }) => {
      const due = [...firstDue(list, now, most)];
      const over = expired.filter(({ row }) => name === undefined || row.destination === name);
      return [...due, ...over].sort(compareDue).slice(0, most);
    });
    return candidates
      .sort(compareDue)
      .slice(0, limit)
      .map((entry) => {
        this.#write(entry, { ...entry.row, owner, leaseUntil });
        return rowOf(entry);
      });
  }

  remove({ id, owner }: LeasedTimeout, now: Instant): LeaseAnswer {
    const entry = this.#entries.get(id);
    const loss = owner === undefined ? null : leaseLoss(entry?.row, owner, now);
    if (loss) return loss;
    if (entry) this.#delete(entry);
    return "ok";
  }

  release({ id, owner, dueAt, error, isDead }: ReleasedTimeout, now: Instant): LeaseAnswer {
    const entry = this.#entries.get(id);
    const loss = owner === undefined ? null : leaseLoss(entry?.row, owner, now);
    if (loss) return loss;
    if (!entry) return "ok";
    const { row } = entry;
    this.#write(entry, {
      ...row,
      owner: null,
      leaseUntil: null,
      dueAt: dueAt ?? row.dueAt,
      tries: error === undefined ? row.tries : row.tries + 1,
      error: error ?? row.error,
      deadAt: isDead ? now : row.deadAt,
    });
    return "ok";
  }

  extend({ id, owner, leaseUntil }: ExtendedLease, now: Instant): LeaseAnswer {
    const entry = this.#entries.get(id);
    const loss = leaseLoss(entry?.row, owner, now);
    if (loss) return loss;
    if (entry) this.#write(entry, { ...entry.row, leaseUntil });
    return "ok";
  }

  reap(now: Instant): number {
    const expired = this.#leased.takeDue(now, Number.POSITIVE_INFINITY);
    for (const entry of expired) {
      entry.row = { ...entry.row, owner: null, leaseUntil: null };
      this.#place(entry);
    }
    return expired.length;
  }

  cancel(which: Which, now: Instant): Revoked {
    let revoked = NOTHING;
    for (const entry of this.#matching(which)) {
      const isLeased = entry.row.leaseUntil !== null && entry.row.leaseUntil > now;
      this.#delete(entry);
      revoked = isLeased
        ? { ...revoked, leased: revoked.leased + 1 }
        : { ...revoked, pending: revoked.pending + 1 };
    }
    return revoked;
  }

  requeue(id: TimeoutId, now: Instant): boolean {
    const entry = this.#entries.get(id);
    if (!entry || entry.row.deadAt === null) return false;
    this.#write(entry, { ...entry.row, deadAt: null, tries: 0, dueAt: now });
    return true;
  }

  reschedule({ id, from, to }: Move): boolean {
    const entry = this.#entries.get(id);
    if (entry?.row.dueAt !== from || entry.row.owner !== null || entry.row.deadAt !== null) return false;
    this.#write(entry, { ...entry.row, dueAt: to });
    return true;
  }

  list(filter: TimeoutFilter, after: TimeoutId | null, limit: number): TimeoutRow[] {
    const found: TimeoutRow[] = [];
    const { from, to } = namesOf(filter.tenant);
    for (const entry of this.#byId.from(({ row }) => compareIds(row.id, after ?? from) <= 0)) {
      if (found.length === limit || (filter.tenant !== undefined && entry.row.id >= to)) break;
      if (matches(entry, filter)) found.push(rowOf(entry));
    }
    return found;
  }

  count(now: Instant, tenant: string | undefined): TimeoutCounts {
    const counts = { pending: 0, due: 0, leased: 0, dead: 0 };
    for (const { row } of this.#entries.values()) {
      if (tenantOf(row.id) !== tenant) continue;
      if (row.deadAt !== null) counts.dead += 1;
      else if (row.owner !== null) counts.leased += 1;
      else {
        counts.pending += 1;
        if (row.dueAt <= now) counts.due += 1;
      }
    }
    return counts;
  }

  #matching(which: Which): readonly TimeoutEntry[] {
    if ("id" in which) return present(this.#entries.get(which.id));
    if (which.key !== undefined) {
      const scope = "saga" in which ? sagaScope(which.saga) : destinationScope(which.destination);
      return present(this.#byKey.get(keyText(scope, which.key)));
    }
    return "saga" in which ? [...(this.#bySaga.get(sagaText(which.saga)) ?? [])] : [];
  }

  #write(entry: TimeoutEntry, row: TimeoutEntry["row"]): void {
    this.#unplace(entry);
    entry.row = row;
    this.#place(entry);
  }

  #delete(entry: TimeoutEntry): void {
    this.#unplace(entry);
    const { id, key, saga } = entry.row;
    this.#entries.delete(id);
    this.#byId.remove(entry);
    if (key !== null) this.#byKey.delete(keyText(scopeOf(asNew(entry.row)), key));
    if (saga) {
      const siblings = this.#bySaga.get(sagaText(saga));
      siblings?.delete(entry);
      if (siblings?.size === 0) this.#bySaga.delete(sagaText(saga));
    }
  }

  #place(entry: TimeoutEntry): void {
    const { leaseUntil, deadAt, destination } = entry.row;
    if (leaseUntil !== null) this.#leased.add(entry, leaseUntil);
    else if (deadAt === null) {
      this.#free.add(entry);
      const ofOne = this.#freeOf.get(destination) ?? new SortedList(compareDue);
      this.#freeOf.set(destination, ofOne);
      ofOne.add(entry);
    }
  }

  #unplace(entry: TimeoutEntry): void {
    const { leaseUntil, deadAt, destination } = entry.row;
    if (leaseUntil !== null) this.#leased.remove(entry);
    else if (deadAt === null) {
      this.#free.remove(entry);
      const ofOne = this.#freeOf.get(destination);
      ofOne?.remove(entry);
      if (ofOne?.isEmpty) this.#freeOf.delete(destination);
    }
  }
}

function* firstDue(list: SortedList<TimeoutEntry> | undefined, now: Instant, limit: number) {
  let taken = 0;
  for (const entry of list?.from(() => false) ?? []) {
    if (entry.row.dueAt > now || taken === limit) return;
    taken += 1;
    yield entry;
  }
}

function present(entry: TimeoutEntry | undefined): TimeoutEntry[] {
  return entry ? [entry] : [];
}

function asNew({ saga, destination }: { saga: SagaKey | null; destination: string }) {
  return { destination, ...(saga && { saga }) };
}

function keyText(scope: string, key: string): string {
  return `${scope}\0${key}`;
}

function compareDue(a: TimeoutEntry, b: TimeoutEntry): number {
  return a.row.dueAt - b.row.dueAt || compareIds(a.row.id, b.row.id);
}

function matches({ row, wallClock }: TimeoutEntry, filter: TimeoutFilter): boolean {
  if (filter.destination !== undefined && row.destination !== filter.destination) return false;
  if (filter.saga && (row.saga === null || sagaText(row.saga) !== sagaText(filter.saga))) return false;
  if (filter.isDead !== undefined && (row.deadAt !== null) !== filter.isDead) return false;
  return !filter.hasWallClock || wallClock !== null;
}

function rowOf({ row, headers, wallClock }: TimeoutEntry): TimeoutRow {
  return {
    ...row,
    headers: headers === null ? null : decodeHeaders(headers),
    wallClock: wallClock === null ? null : JSON.parse(wallClock),
  };
}
