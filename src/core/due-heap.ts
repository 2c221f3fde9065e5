import type { Instant } from "./time.ts";

/** An item that knows its slot in a heap, so that it can be removed without a search. */
export interface Slotted {
  /** Its index in its heap; -1 in none. An item is in at most one heap at a time. */
  slot: number;
}

/**
 * Items by the instant at which they are due, in a binary heap. Reading the smallest costs nothing, whatever the
 * size. Instants mostly grow, so adding one mostly costs one comparison. The instants are in a separate array of
 * doubles: reading them through the items would cost a cache miss per comparison.
 */
export class DueHeap<Item extends Slotted> {
  readonly #items: Item[] = [];
  readonly #dueAts: Instant[] = [];

  /** The smallest instant; null if the heap is empty. */
  get nextAt(): Instant | null {
    return this.#dueAts[0] ?? null;
  }

  /** All items, unordered. */
  get items(): readonly Item[] {
    return this.#items;
  }

  add(item: Item, dueAt: Instant): void {
    this.#items.push(item);
    this.#dueAts.push(dueAt);
    this.#rise(this.#items.length - 1, item, dueAt);
  }

  remove(item: Item): void {
    const slot = item.slot;
    if (this.#items[slot] !== item) throw new Error("DueHeap.remove: item not found in this heap");
    item.slot = -1;
    const last = this.#items.pop() as Item;
    const lastAt = this.#dueAts.pop() as Instant;
    if (last !== item) this.#settle(slot, last, lastAt);
  }

  /** Removes and returns at most `limit` items that are due. */
  takeDue(now: Instant, limit: number): Item[] {
    const taken: Item[] = [];
    while (taken.length < limit && this.#items.length > 0 && (this.#dueAts[0] as Instant) <= now) {
      const item = this.#items[0] as Item;
      this.remove(item);
      taken.push(item);
    }
    return taken;
  }

  /** Places an item at a hole in the heap, and restores the order. */
  #settle(hole: number, item: Item, dueAt: Instant): void {
    const parentAt = this.#dueAts[(hole - 1) >> 1];
    if (parentAt !== undefined && parentAt > dueAt) this.#rise(hole, item, dueAt);
    else this.#sink(hole, item, dueAt);
  }

  #rise(from: number, item: Item, dueAt: Instant): void {
    let slot = from;
    while (slot > 0) {
      const parent = (slot - 1) >> 1;
      const parentAt = this.#dueAts[parent] as Instant;
      if (parentAt <= dueAt) break;
      this.#put(slot, this.#items[parent] as Item, parentAt);
      slot = parent;
    }
    this.#put(slot, item, dueAt);
  }

  #sink(from: number, item: Item, dueAt: Instant): void {
    const length = this.#items.length;
    let slot = from;
    for (;;) {
      let child = 2 * slot + 1;
      if (child >= length) break;
      const isRightSmaller =
        child + 1 < length && (this.#dueAts[child + 1] as Instant) < (this.#dueAts[child] as Instant);
      if (isRightSmaller) child += 1;
      const childAt = this.#dueAts[child] as Instant;
      if (childAt >= dueAt) break;
      this.#put(slot, this.#items[child] as Item, childAt);
      slot = child;
    }
    this.#put(slot, item, dueAt);
  }

  #put(slot: number, item: Item, dueAt: Instant): void {
    this.#items[slot] = item;
    this.#dueAts[slot] = dueAt;
    item.slot = slot;
  }
}
