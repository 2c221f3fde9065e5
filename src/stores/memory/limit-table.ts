import type { JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { SortedList } from "./sorted-list.ts";

/** The number of live jobs of a limit key, by state. */
export interface StateCounts {
  available: number;
  active: number;
  unstarted: number;
  retryable: number;
}

interface LimitIndex<Entry> extends StateCounts {
  /** Jobs that wait only for the limit. */
  readonly waiting: SortedList<Entry>;
  waitingCount: number;
  /** The number of its live jobs. A limit without any is deleted. */
  size: number;
}

const NO_JOBS: StateCounts & { readonly waiting: number } = {
  waiting: 0,
  available: 0,
  active: 0,
  unstarted: 0,
  retryable: 0,
};

/** The live jobs that have a limit key: the waiting ones in order, and counts of the others. */
export class LimitTable<Entry extends { readonly row: JobRow }> {
  readonly #limits = new Map<string, LimitIndex<Entry>>();
  readonly #activeIn = new Map<string, number>();
  readonly #compare: (a: Entry, b: Entry) => number;

  constructor(compare: (a: Entry, b: Entry) => number) {
    this.#compare = compare;
  }

  /** The number of active jobs of a queue that have a limit key. */
  activeIn(queue: string): number {
    return this.#activeIn.get(queue) ?? 0;
  }

  /** The best waiting jobs. */
  best(limitKey: string, count: number): Entry[] {
    const best: Entry[] = [];
    for (const entry of this.waiting(limitKey)) {
      if (best.length >= count) break;
      best.push(entry);
    }
    return best;
  }

  /** The waiting jobs, in order. */
  waiting(limitKey: string): Iterable<Entry> {
    return this.#limits.get(limitKey)?.waiting.from(() => false) ?? [];
  }

  count(limitKey: string): StateCounts & { readonly waiting: number } {
    const index = this.#limits.get(limitKey);
    if (!index) return NO_JOBS;
    const { available, active, unstarted, retryable, waitingCount: waiting } = index;
    return { waiting, available, active, unstarted, retryable };
  }

  /** Limit keys with live jobs, sorted. */
  names(after: string | null, limit: number): string[] {
    const names = [...this.#limits.keys()].filter((name) => after === null || name > after);
    return names.sort((a, b) => (a < b ? -1 : 1)).slice(0, limit);
  }

  enter(entry: Entry, limitKey: string): void {
    if (isTerminal(entry.row.state)) return;
    let index = this.#limits.get(limitKey);
    if (!index) {
      const waiting = new SortedList<Entry>(this.#compare);
      index = { waiting, waitingCount: 0, size: 0, available: 0, active: 0, unstarted: 0, retryable: 0 };
      this.#limits.set(limitKey, index);
    }
    if (isWaiting(entry.row)) index.waiting.add(entry);
    this.#add(index, entry.row, 1);
  }

  leave(entry: Entry, limitKey: string): void {
    const index = this.#limits.get(limitKey);
    if (!index || isTerminal(entry.row.state)) return;
    if (isWaiting(entry.row)) index.waiting.remove(entry);
    this.#add(index, entry.row, -1);
    if (index.size === 0) this.#limits.delete(limitKey);
  }

  #add(index: LimitIndex<Entry>, row: JobRow, by: 1 | -1): void {
    index.size += by;
    if (isWaiting(row)) index.waitingCount += by;
    if (row.state === "available" || row.state === "retryable") index[row.state] += by;
    if (row.state !== "active") return;
    index.active += by;
    if (row.startedAt === null) index.unstarted += by;
    const active = this.activeIn(row.queue) + by;
    if (active === 0) this.#activeIn.delete(row.queue);
    else this.#activeIn.set(row.queue, active);
  }
}

function isWaiting(row: JobRow): boolean {
  return row.state === "pending" && row.needs === 0;
}
