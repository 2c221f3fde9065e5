import { fairKeyOf, NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import { type JobRow, nextPriorityRank, priorityRank, type Rank } from "../../core/job/job.ts";
import {
  type InOrderQuestion,
  type KeysAnswer,
  type KeysQuestion,
  mostPassed,
  type TakeQuestion,
} from "../claim-questions.ts";
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
  readonly #byKey = new Map<Rank, Map<string, KeyedJobs<Item>>>();

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
      this.#byKey.set(rank, new Map());
    }
    let keyed = this.#find(rank, row.fairKey as string);
    if (!keyed) {
      keyed = { key: row.fairKey as string, jobs: new SortedList(this.#compare), size: 0 };
      keys.add(keyed);
      this.#byKey.get(rank)?.set(keyed.key, keyed);
    }
    keyed.jobs.add(entry);
    keyed.size += 1;
  }

  remove(entry: Item): void {
    const rank = priorityRank(entry.row.rank);
    const keyed = this.#find(rank, entry.row.fairKey as string);
    if (!keyed) return;
    keyed.jobs.remove(entry);
    this.#gave(rank, keyed, 1);
  }

  /** Removes and returns the best jobs of a key in one priority. */
  take(rank: Rank, key: string, count: number): readonly Item[] {
    const keyed = this.#find(rank, key);
    if (!keyed) return [];
    const taken = keyed.jobs.take(count, () => false);
    this.#gave(rank, keyed, taken.length);
    return taken;
  }

  #gave(rank: Rank, keyed: KeyedJobs<Item>, count: number): void {
    keyed.size -= count;
    if (keyed.size > 0) return;
    const keys = this.#priorities.get(rank) as SortedList<KeyedJobs<Item>>;
    keys.remove(keyed);
    this.#byKey.get(rank)?.delete(keyed.key);
    if (!keys.isEmpty) return;
    this.#priorities.delete(rank);
    this.#byKey.delete(rank);
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
    return this.#byKey.get(rank)?.get(key);
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

/** Removes and returns the best jobs of each key. */
export function takeFair<Item extends Entry>(
  ready: SortedList<Item>,
  fair: FairTable<Item> | undefined,
  { take, rank, withKeyless }: TakeQuestion,
): Item[] {
  const found: Item[] = [];
  for (const { key, count } of take) {
    if (key === NO_FAIR_KEY && withKeyless)
      for (const entry of keylessJobs(ready, rank, count)) found.push(entry);
    else for (const entry of fair?.take(rank, key, count) ?? []) found.push(entry);
  }
  for (const entry of found) ready.remove(entry);
  return found;
}

/** Removes and returns the best jobs in the order of arrival whose keys may give some. Null: another priority is the best. */
export function takeInOrder<Item extends Entry>(
  ready: SortedList<Item>,
  fair: FairTable<Item> | undefined,
  { inOrder, round }: InOrderQuestion,
): { readonly found: Item[]; readonly isEnd: boolean } | null {
  const head = ready.first;
  if (!head || priorityRank(head.row.rank) !== round.rank) return null;
  const { last } = round;
  const end = nextPriorityRank(round.rank);
  let [left, passed, isEnd] = [inOrder, mostPassed(inOrder), true];
  const judge = ({ row }: Item): boolean | null => {
    if (row.rank >= end) return null;
    if (left === 0 || passed === 0) {
      isEnd = false;
      return null;
    }
    if (round.take(fairKeyOf(row))) left -= 1;
    else {
      passed -= 1;
      return false;
    }
    return true;
  };
  const isBefore = ({ row }: Item) =>
    last !== undefined && (row.rank < last.rank || (row.rank === last.rank && row.id <= last.id));
  const found = ready.takeIf(isBefore, judge);
  for (const entry of found) if (entry.row.fairKey !== null) fair?.remove(entry);
  return { found, isEnd };
}

/** How many of the best jobs of a queue are read for each job without a key that is wanted. */
const READ_FOR_KEYLESS = 4;

function keylessJobs<Item extends Entry>(ready: SortedList<Item>, rank: Rank, count: number): Item[] {
  const found: Item[] = [];
  let left = READ_FOR_KEYLESS * count;
  for (const entry of ready.from(({ row }) => row.rank < rank)) {
    if (left === 0 || found.length === count || entry.row.rank >= nextPriorityRank(rank)) break;
    if (entry.row.fairKey === null) found.push(entry);
    left -= 1;
  }
  return found;
}
