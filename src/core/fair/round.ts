import type { JobRow, Rank } from "../job/job.ts";
import { type FairWeights, fairKeyOf, weightOf } from "./fair-options.ts";
import { ROUND_LIMITS, type RoundLimits } from "./round-limits.ts";

/** The rounds of a busy fair queue, one for each priority: one that jobs of a better priority interrupt goes on after them. */
export class Rounds {
  /** How many jobs may start in a round. A round in which each key gives its weight once may be longer. */
  most = 0;
  readonly limits: RoundLimits;
  readonly #all = new Map<Rank, Round>();
  #current: Round | undefined;

  constructor(limits: RoundLimits = ROUND_LIMITS) {
    this.limits = limits;
  }

  /** How many jobs start in `busyWithin` milliseconds. */
  get startSoon(): number {
    return (this.most * this.limits.busyWithin) / this.limits.longest;
  }

  /** The round that gave last, if it is not over. */
  get current(): Round | undefined {
    return this.#current?.isOver === false ? this.#current : undefined;
  }

  /** The round of a priority, by its lowest rank. */
  of(rank: Rank): Round {
    this.#current = this.#all.get(rank) ?? new Round(rank, this.limits);
    this.#all.set(rank, this.#current);
    return this.#current;
  }
}

/**
 * A round of one priority: every key that had jobs when it began gives the same multiple of its weight, in any order.
 * So a store may take what is cheapest to take, which is the order of arrival while that is as fair. A claim
 * changes the round as it takes. If the claim fails, its keys give less in this round, and no more than that is lost.
 */
export class Round {
  /** The lowest rank of the priority. */
  readonly rank: Rank;
  readonly #limits: RoundLimits;
  #hasKeyless = false;
  #lastKey = "";
  /** What each key may still give. */
  readonly #left = new Map<string, number>();
  #last: JobRow | undefined;
  #isScanned = false;
  /** Whether jobs were passed over in the order of arrival, because their keys had given their part. */
  hasPassed = false;

  constructor(rank: Rank, limits: RoundLimits = ROUND_LIMITS) {
    this.rank = rank;
    this.#limits = limits;
  }

  get isOver(): boolean {
    return this.#left.size === 0;
  }

  get hasKeyless(): boolean {
    return this.#hasKeyless;
  }

  /** The last key by name that took part. */
  get lastKey(): string {
    return this.#lastKey;
  }

  /** The last job that was taken in the order of arrival. All before it are of keys that have given their part. */
  get last(): Pick<JobRow, "rank" | "id"> | undefined {
    return this.#last;
  }

  /** Whether to look for the jobs of each key, because those in the order of arrival are of keys that have given their part. */
  get isScanned(): boolean {
    return this.#isScanned;
  }

  /** `most` jobs may start in it. `isPart`: there may be more keys than these. Then each gives its weight once. */
  begin(
    { keys, hasKeyless }: { readonly keys: readonly string[]; readonly hasKeyless: boolean },
    weights: FairWeights,
    most: number,
    isPart: boolean,
  ): void {
    this.#hasKeyless = hasKeyless;
    this.#lastKey = isPart ? (keys.at(-1) as string) : "";
    this.#last = undefined;
    this.#isScanned = isPart;
    this.hasPassed = false;
    this.#left.clear();
    let once = 0;
    for (const key of keys) once += weightOf(weights, key);
    const { fewestJobs, jobsOfKey } = this.#limits;
    const jobs = Math.min(most, Math.max(fewestJobs, jobsOfKey * keys.length));
    const times = isPart ? 1 : Math.max(1, Math.floor(jobs / once));
    for (const key of keys) this.#left.set(key, times * weightOf(weights, key));
  }

  end(): void {
    this.#left.clear();
  }

  /** Whether a key may give one more job. If so, it has. */
  take(key: string): boolean {
    const left = this.#left.get(key);
    if (left === undefined) return false;
    if (left === 1) this.#left.delete(key);
    else this.#left.set(key, left - 1);
    return true;
  }

  /** What each key may still give. */
  get left(): ReadonlyMap<string, number> {
    return this.#left;
  }

  /** These were taken in the order of arrival. `isScanned`: there were too few between those of other keys. */
  tookInOrder(rows: readonly JobRow[], isScanned: boolean): void {
    this.#last = rows.at(-1) ?? this.#last;
    this.#isScanned = isScanned;
  }

  /** These are what the keys gave that were asked for as many jobs. A key that gave fewer has no more. */
  tookOfKeys(
    wanted: readonly { readonly key: string; readonly count: number }[],
    rows: readonly JobRow[],
  ): void {
    const counts = new Map<string, number>();
    for (const row of rows) {
      const key = fairKeyOf(row);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const { key, count } of wanted) {
      const given = counts.get(key) ?? 0;
      const left = (this.#left.get(key) ?? 0) - given;
      if (given < count || left <= 0) this.#left.delete(key);
      else this.#left.set(key, left);
    }
  }
}
