import { NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import { type JobRow, nextPriorityRank, priorityRank, type Rank } from "../../core/job/job.ts";
import type { KeysAnswer, KeysQuestion, TakeQuestion } from "../claim-turns.ts";
import { SortedList } from "./sorted-list.ts";

type Entry = { readonly row: JobRow };

/** The available jobs of one fair key and priority. */
interface KeyedJobs<Item> {
  readonly key: string;
  readonly jobs: SortedList<Item>;
  size: number;
}

/** The available jobs of a queue that have a fair key, by priority and key. A key without any is deleted. */
export class FairTable<Item extends Entry> {
  readonly #compare: (a: Item, b: Item) => number;
  readonly #priorities = new Map<Rank, SortedList<KeyedJobs<Item>>>();

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare;
  }

  add(entry: Item): void {
    const { row } = entry;
    const rank = priorityRank(row.rank);
    let keys = this.#priorities.get(rank);
    if (!keys) {
      keys = new SortedList((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
      this.#priorities.set(rank, keys);
    }
    let keyed = this.#find(rank, row.fairKey as string);
    if (!keyed) {
      keyed = { key: row.fairKey as string, jobs: new SortedList(this.#compare), size: 0 };
      keys.add(keyed);
    }
    keyed.jobs.add(entry);
    keyed.size += 1;
  }

  remove(entry: Item): void {
    const rank = priorityRank(entry.row.rank);
    const keyed = this.#find(rank, entry.row.fairKey as string);
    if (!keyed) return;
    keyed.jobs.remove(entry);
    keyed.size -= 1;
    if (keyed.size > 0) return;
    const keys = this.#priorities.get(rank) as SortedList<KeyedJobs<Item>>;
    keys.remove(keyed);
    if (keys.isEmpty) this.#priorities.delete(rank);
  }

  /** The keys of a priority from this one on, in order. */
  *keys(rank: Rank, from: string): Generator<KeyedJobs<Item>, void, undefined> {
    yield* this.#priorities.get(rank)?.from(({ key }) => key < from) ?? [];
  }

  /** The jobs of a key in one priority, best first. */
  jobs(rank: Rank, key: string): Iterable<Item> {
    return this.#find(rank, key)?.jobs.from(() => false) ?? [];
  }

  /** The priorities, best first. */
  priorities(): Rank[] {
    return [...this.#priorities.keys()].sort((a, b) => a - b);
  }

  #find(rank: Rank, key: string): KeyedJobs<Item> | undefined {
    for (const keyed of this.keys(rank, key)) return keyed.key === key ? keyed : undefined;
    return undefined;
  }
}

/** Which keys have available jobs. */
export function keysOfFair<Item extends Entry>(
  ready: SortedList<Item>,
  fair: FairTable<Item> | undefined,
  { keysFrom, after, isAgain, limit }: KeysQuestion,
): KeysAnswer | null {
  const head = ready.from(({ row }) => row.rank < keysFrom).next();
  if (head.done) return null;
  const { row } = head.value;
  const rank = priorityRank(row.rank);
  const keys: string[] = [];
  for (const { key } of fair?.keys(rank, after) ?? []) {
    if (keys.length === limit) break;
    if (key !== after || isAgain) keys.push(key);
  }
  for (const { key } of fair?.keys(rank, "") ?? []) {
    if (keys.length === limit || key > after || (key === after && isAgain)) break;
    keys.push(key);
  }
  return { rank, keys, hasKeyless: row.fairKey === null };
}

/** The best jobs of each key. The caller removes them. */
export function takeFair<Item extends Entry>(
  ready: SortedList<Item>,
  fair: FairTable<Item> | undefined,
  { take, rank, withKeyless }: TakeQuestion,
): Item[] {
  const found: Item[] = [];
  for (const { key, count } of take) {
    const jobs =
      key === NO_FAIR_KEY && withKeyless ? keylessJobs(ready, rank, count) : (fair?.jobs(rank, key) ?? []);
    let left = count;
    for (const entry of jobs) {
      if (left === 0) break;
      found.push(entry);
      left -= 1;
    }
  }
  return found;
}

/** How many of the best jobs of a queue are read for each job without a key that is wanted. */
const READ_FOR_KEYLESS = 4;

function* keylessJobs<Item extends Entry>(ready: SortedList<Item>, rank: Rank, count: number) {
  let left = READ_FOR_KEYLESS * count;
  for (const entry of ready.from(({ row }) => row.rank < rank)) {
    if (left === 0 || entry.row.rank >= nextPriorityRank(rank)) return;
    if (entry.row.fairKey === null) yield entry;
    left -= 1;
  }
}
