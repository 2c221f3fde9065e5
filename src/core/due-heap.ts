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

  /** Both loops write the arrays themselves: a call per step would put each instant into an object of its own. */
  #rise(from: number, item: Item, dueAt: Instant): void {
    const items = this.#items;
    const dueAts = this.#dueAts;
    let slot = from;
    while (slot > 0) {
      const parent = (slot - 1) >> 1;
      const parentAt = dueAts[parent] as Instant;
      if (parentAt <= dueAt) break;
      const moved = items[parent] as Item;
      items[slot] = moved;
      dueAts[slot] = parentAt;
      moved.slot = slot;
      slot = parent;
    }
    items[slot] = item;
    dueAts[slot] = dueAt;
    item.slot = slot;
  }

  #sink(from: number, item: Item, dueAt: Instant): void {
    const items = this.#items;
    const dueAts = this.#dueAts;
    const length = items.length;
    let slot = from;
    for (;;) {
      let child = 2 * slot + 1;
      if (child >= length) break;
      if (child + 1 < length && (dueAts[child + 1] as Instant) < (dueAts[child] as Instant)) child += 1;
      const childAt = dueAts[child] as Instant;
      if (childAt >= dueAt) break;
      const moved = items[child] as Item;
      items[slot] = moved;
      dueAts[slot] = childAt;
      moved.slot = slot;
      slot = child;
    }
    items[slot] = item;
    dueAts[slot] = dueAt;
    item.slot = slot;
  }
}
