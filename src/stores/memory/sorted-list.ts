const CHUNK_LIMIT = 512;

/**
 * Items in order, as a list of sorted chunks. Ids and ranks grow, so most items are appended, which costs one
 * comparison. Anything else costs two binary searches and a move within one chunk. Remove an item before its sort key
 * changes.
 */
export class SortedList<Item> {
  readonly #compare: (a: Item, b: Item) => number;
  /** Never contains an empty chunk. */
  readonly #chunks: Item[][] = [];

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  get first(): Item | undefined {
    return this.#chunks[0]?.[0];
  }

  add(item: Item): void {
    const tail = this.#chunks.at(-1);
    if (tail && this.#compare(tail.at(-1) as Item, item) > 0) this.#insert(item);
    else if (tail && tail.length < CHUNK_LIMIT) tail.push(item);
    else this.#chunks.push([item]);
  }

  remove(item: Item): void {
    // Most items leave in the order in which they came. A search costs up to twenty comparisons.
    if (this.first === item) this.#removeAt(0, 0);
    else this.#findAndRemove(item);
  }

  #findAndRemove(item: Item): void {
    const isBefore = (other: Item) => this.#compare(other, item) < 0;
    const at = this.#chunkAfter(isBefore);
    const chunk = this.#chunks[at] ?? [];
    const index = firstAfter(chunk, isBefore);
    if (chunk[index] !== item)
      throw new Error("SortedList.remove: item not found at its position; was its sort key changed?");
    this.#removeAt(at, index);
  }

  #removeAt(at: number, index: number): void {
    const chunk = this.#chunks[at] as Item[];
    if (index === 0) chunk.shift();
    else chunk.splice(index, 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** Removes and returns the first `limit` items for which `isBefore` is false. */
  take(limit: number, isBefore: (item: Item) => boolean): Item[] {
    const taken: Item[] = [];
    let at = this.#chunkAfter(isBefore);
    let start = at < this.#chunks.length ? firstAfter(this.#chunks[at] as Item[], isBefore) : 0;
    while (taken.length < limit && at < this.#chunks.length) {
      const chunk = this.#chunks[at] as Item[];
      for (const item of chunk.splice(start, limit - taken.length)) taken.push(item);
      if (chunk.length === 0) this.#chunks.splice(at, 1);
      else at += 1;
      start = 0;
    }
    return taken;
  }

  /**
   * Removes and returns the items that `judge` wants, in order, from the first for which `isBefore` is false, until it
   * answers null.
   */
  takeIf(isBefore: (item: Item) => boolean, judge: (item: Item) => boolean | null): Item[] {
    const taken: Item[] = [];
    let at = this.#chunkAfter(isBefore);
    let start = at < this.#chunks.length ? firstAfter(this.#chunks[at] as Item[], isBefore) : 0;
    for (let isOver = false; !isOver && at < this.#chunks.length; start = 0) {
      const chunk = this.#chunks[at] as Item[];
      let kept = start;
      let index = start;
      for (; index < chunk.length; index++) {
        const item = chunk[index] as Item;
        const isWanted = judge(item);
        isOver = isWanted === null;
        if (isOver) break;
        if (isWanted) taken.push(item);
        else chunk[kept++] = item;
      }
      chunk.splice(kept, index - kept);
      if (chunk.length === 0) this.#chunks.splice(at, 1);
      else at += 1;
    }
    return taken;
  }

  /** Iterates over the items in order, from the first for which `isBefore` is false. */
  *from(isBefore: (item: Item) => boolean): Generator<Item, void, undefined> {
    let at = this.#chunkAfter(isBefore);
    let start = at < this.#chunks.length ? firstAfter(this.#chunks[at] as Item[], isBefore) : 0;
    for (; at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at] as Item[];
      for (; start < chunk.length; start++) yield chunk[start] as Item;
      start = 0;
    }
  }

  /** Iterates backwards, from the last item for which `isBefore` is true. */
  *back(isBefore: (item: Item) => boolean): Generator<Item, void, undefined> {
    let at = Math.min(this.#chunkAfter(isBefore), this.#chunks.length - 1);
    if (at < 0) return;
    let index = firstAfter(this.#chunks[at] as Item[], isBefore) - 1;
    for (; at >= 0; at--) {
      const chunk = this.#chunks[at] as Item[];
      for (; index >= 0; index--) yield chunk[index] as Item;
      index = (this.#chunks[at - 1]?.length ?? 0) - 1;
    }
  }

  #insert(item: Item): void {
    const isBefore = (other: Item) => this.#compare(other, item) < 0;
    const at = this.#chunkAfter(isBefore);
    const chunk = this.#chunks[at] as Item[];
    chunk.splice(firstAfter(chunk, isBefore), 0, item);
    if (chunk.length > CHUNK_LIMIT) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK_LIMIT / 2));
  }

  /** The first chunk with an item for which `isBefore` is false. */
  #chunkAfter(isBefore: (item: Item) => boolean): number {
    return firstAfter(this.#chunks, (chunk) => isBefore(chunk.at(-1) as Item));
  }
}

/** The index of the first item for which `isBefore` is false. `isBefore` must be true for a prefix of the list only. */
function firstAfter<Item>(items: readonly Item[], isBefore: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(items[middle] as Item)) low = middle + 1;
    else high = middle;
  }
  return low;
}
