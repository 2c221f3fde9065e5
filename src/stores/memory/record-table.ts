import { DueHeap, type Slotted } from "../../core/due-heap.ts";
import type { Json } from "../../core/schema.ts";
import { lastDownFrom } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { RecordKey, RecordRow } from "../../ports/store.ts";
import type { LeastRevision } from "./least-revision.ts";
import { SortedList } from "./sorted-list.ts";

interface RecordEntry extends Slotted {
  row: RecordRow;
}

interface KindIndex {
  readonly byKey: Map<string, RecordEntry>;
  readonly sorted: SortedList<RecordEntry>;
}

/** Versioned documents by kind and key. Rows are replaced, never changed, as those of jobs are. */
export class RecordTable {
  readonly #kinds = new Map<string, KindIndex>();
  readonly #wakeable = new DueHeap<RecordEntry>();
  /** The highest version of any deleted record. A new record starts above it, so no version is ever used again. */
  #floor = 0;
  readonly #least: LeastRevision;

  constructor(least: LeastRevision) {
    this.#least = least;
  }

  get nextWakeAt(): Instant | null {
    return this.#wakeable.nextAt;
  }

  get([kind, key]: RecordKey): RecordRow | null {
    return this.#kinds.get(kind)?.byKey.get(key)?.row ?? null;
  }

  put([kind, key]: RecordKey, body: Json, wakeAt: Instant | null): void {
    const index = this.#kindOf(kind);
    let entry = index.byKey.get(key);
    const version = Math.max((entry?.row.version ?? this.#floor) + 1, this.#least());
    const row: RecordRow = { key: [kind, key], version, wakeAt, body };
    if (!entry) {
      entry = { row, slot: -1 };
      index.byKey.set(key, entry);
      index.sorted.add(entry);
    }
    this.#write(entry, row);
  }

  delete([kind, key]: RecordKey): void {
    const index = this.#kinds.get(kind);
    const entry = index?.byKey.get(key);
    if (!index || !entry) return;
    this.#floor = Math.max(this.#floor, entry.row.version);
    if (entry.slot >= 0) this.#wakeable.remove(entry);
    index.byKey.delete(key);
    index.sorted.remove(entry);
    if (index.byKey.size === 0) this.#kinds.delete(kind);
  }

  /** Returns due records, and holds them until `holdUntil`. */
  hold(now: Instant, limit: number, holdUntil: Instant): RecordRow[] {
    return this.#wakeable.takeDue(now, limit).map((entry) => {
      this.#write(entry, { ...entry.row, wakeAt: holdUntil });
      return entry.row;
    });
  }

  list(kind: string, after: string | null, limit: number): RecordRow[] {
    const found: RecordRow[] = [];
    const sorted = this.#kinds.get(kind)?.sorted;
    for (const { row } of sorted?.from((entry) => after !== null && entry.row.key[1] <= after) ?? []) {
      if (found.length === limit) break;
      found.push(row);
    }
    return found;
  }

  /** From the last key that is before `before`, down to the first that belongs to no tenant. */
  listBack(kind: string, before: string | null, limit: number): RecordRow[] {
    const last = lastDownFrom(before);
    const found: RecordRow[] = [];
    const sorted = this.#kinds.get(kind)?.sorted;
    for (const { row } of sorted?.back((entry) => before === null || entry.row.key[1] < before) ?? []) {
      if (found.length === limit || row.key[1] <= last) break;
      found.push(row);
    }
    return found;
  }

  /** How many records of a kind have keys with this prefix, and when the first of them is due. */
  count(kind: string, prefix: string): { readonly count: number; readonly nextAt: Instant | null } {
    let nextAt: Instant | null = null;
    let count = 0;
    const sorted = this.#kinds.get(kind)?.sorted;
    for (const { row } of sorted?.from((entry) => entry.row.key[1] < prefix) ?? []) {
      if (!row.key[1].startsWith(prefix)) break;
      nextAt = earlier(nextAt, row.wakeAt);
      count += 1;
    }
    return { count, nextAt };
  }

  #write(entry: RecordEntry, row: RecordRow): void {
    if (entry.slot >= 0) this.#wakeable.remove(entry);
    entry.row = row;
    if (row.wakeAt !== null) this.#wakeable.add(entry, row.wakeAt);
  }

  #kindOf(kind: string): KindIndex {
    let index = this.#kinds.get(kind);
    if (!index) {
      index = { byKey: new Map(), sorted: new SortedList(compareKey) };
      this.#kinds.set(kind, index);
    }
    return index;
  }
}

function compareKey(a: RecordEntry, b: RecordEntry): number {
  return a.row.key[1] < b.row.key[1] ? -1 : a.row.key[1] > b.row.key[1] ? 1 : 0;
}
