/** Who an event belongs to: nothing of a dead owner ever happens, and nothing of a paused one before it goes on. */
export interface Owner {
  readonly name: string;
  isDead: boolean;
  pausedUntil: number;
  /** Events that the engine itself set, as opposed to handlers and the network: what a closed engine must not leave behind. */
  pendingTimers: number;
}

export interface Scheduled {
  cancel(): void;
}

interface Entry extends Scheduled {
  at: number;
  readonly order: number;
  readonly owner: Owner | null;
  run: (() => void) | null;
}

/** Well after 1970 and not a round number, so that nothing passes by luck. */
export const EPOCH = 1_700_000_003_217.25;

/**
 * Virtual time: everything that happens in a simulated world is an event here, and they happen one at a time. After
 * each event all promises are let run to their end, so that what an event causes is done before the next one.
 */
export class Scheduler {
  /** True time: what the store's clock shows, with fractions. */
  now = EPOCH;
  /** How many events have happened: the measure of how much a run went through. */
  happened = 0;
  readonly #heap: Entry[] = [];
  #order = 0;

  after(delay: number, owner: Owner | null, run: () => void): Scheduled {
    const entry: Entry = {
      at: this.now + Math.max(0, delay),
      order: this.#order++,
      owner,
      run,
      cancel: () => {
        entry.run = null;
      },
    };
    this.#push(entry);
    return entry;
  }

  /** Runs until `isDone` says so or the time is over; answers whether it was done. */
  async runUntil(isDone: () => boolean, limit: number): Promise<boolean> {
    await settled();
    while (!isDone()) {
      const next = this.#pop();
      if (!next || next.at > limit) {
        if (next) this.#push(next);
        this.now = Math.max(this.now, limit);
        return isDone();
      }
      if (next.run === null || next.owner?.isDead) continue;
      if (next.owner && next.owner.pausedUntil > next.at) {
        // It keeps its place in the order, so what was due first still comes first when the pause is over.
        next.at = next.owner.pausedUntil;
        this.#push(next);
        continue;
      }
      this.now = Math.max(this.now, next.at);
      this.happened += 1;
      next.run();
      await settled();
    }
    return true;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, heap[parent] as Entry)) break;
      heap[index] = heap[parent] as Entry;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!last || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      if (!isBefore(heap[child] as Entry, last)) break;
      heap[index] = heap[child] as Entry;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** A tick set from a promise comes after the whole queue of promises, however long their chains are: no real timer is needed. */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
