import { cellOfId, type Home, homeOf } from "../home/cell.ts";
import { type JobRow, priorityRank, type Rank } from "../job/job.ts";
import { type FairWeights, fairKeyOf, weightOf } from "./fair-options.ts";
import type { Rounds } from "./round.ts";

/*
 * Deficit round robin over the fair keys of a queue. Keys have their turns in the order of their names, round and
 * round. In a turn a key gives as many jobs as its weight. The only state is the last turn in each priority, which each
 * claimer keeps for itself: there is nothing in the store that a crash could leave wrong.
 */

/** The key that had its turn last, and how many jobs it gave in it. */
export interface Turn {
  readonly key: string;
  readonly taken: number;
}

/**
 * The last turn in each priority, by its lowest rank; the priority that gave last is the last one. A priority has turns of its own:
 * otherwise jobs of a better one that come in between would move on the turns of a worse one, and a key could miss all of its turns.
 */
export type LastTurns = ReadonlyMap<Rank, Turn>;

/** No turn yet: begin anywhere. */
export const NO_TURNS: LastTurns = new Map();

/** What a claim from a fair queue brings with it. */
export interface Turns extends FairWeights {
  readonly last: LastTurns;
  /**
   * The last turns in each home of a store with several; a home that is not named had none. All homes have jobs of all keys: if
   * they shared their turns, one that is asked after another could give jobs of the same few keys each time. Left out: `last` is that of all homes.
   */
  readonly ofHomes?: ReadonlyMap<Home, LastTurns>;
  /** The queue is busy: keys give their part of rounds. `last` counts only if these give too few. */
  readonly rounds?: Rounds;
}

/** What a claim from one home brings with it. */
export function turnsIn(home: Home, { ofHomes, ...turns }: Turns): Turns {
  return ofHomes ? { ...turns, last: ofHomes.get(home) ?? NO_TURNS } : turns;
}

/** The last turns in each home after these jobs were taken. Jobs of one home are in the order of their turns. */
export function homeTurnsAfter(
  last: ReadonlyMap<Home, LastTurns>,
  rows: readonly JobRow[],
  weights: FairWeights,
  homes: number,
): ReadonlyMap<Home, LastTurns> {
  const turns = new Map(last);
  for (const [home, own] of Map.groupBy(rows, ({ id }) => homeOf(cellOfId(id), homes)))
    turns.set(home, turnsAfter(last.get(home) ?? NO_TURNS, own, weights));
  return turns;
}

/** Whether the last key may give more jobs before the next one has its turn. */
export function hasTurn(turn: Turn, weights: FairWeights): boolean {
  return turn.taken < weightOf(weights, turn.key);
}

/** The last turn after these jobs of one priority were taken, in this order. */
export function turnAfter(last: Turn | null, rows: readonly JobRow[], weights: FairWeights): Turn | null {
  if (rows.length === 0) return last;
  let key = last?.key;
  let taken = last?.taken ?? 0;
  let most = key === undefined ? 0 : weightOf(weights, key);
  for (const row of rows) {
    const next = fairKeyOf(row);
    if (next === key && taken < most) taken += 1;
    else {
      if (next !== key) most = weightOf(weights, next);
      [key, taken] = [next, 1];
    }
  }
  return { key: key as string, taken };
}

/** The last turns after these jobs were taken, in this order. */
export function turnsAfter(last: LastTurns, rows: readonly JobRow[], weights: FairWeights): LastTurns {
  if (rows.length === 0) return last;
  const turns = new Map(last);
  for (let from = 0; from < rows.length; ) {
    const rank = priorityRank((rows[from] as JobRow).rank);
    let to = from + 1;
    while (to < rows.length && priorityRank((rows[to] as JobRow).rank) === rank) to += 1;
    const turn = turnAfter(turns.get(rank) ?? null, rows.slice(from, to), weights);
    turns.delete(rank);
    turns.set(rank, turn as Turn);
    from = to;
  }
  return turns;
}

/**
 * How many of `room` jobs each key gives if all have enough, for keys with these weights in the order of their turns.
 * `taken` is what the first key has already given in its turn.
 */
export function shareOut(weights: readonly number[], room: number, taken: number): number[] {
  let sum = 0;
  for (const weight of weights) sum += weight;
  if (sum === 0) return [];
  const rounds = Math.floor((room + taken) / sum);
  let left = room + taken - rounds * sum;
  return weights.map((weight, index) => {
    const more = Math.min(weight, left);
    left -= more;
    return rounds * weight + more - (index === 0 ? taken : 0);
  });
}

/**
 * Puts the jobs of each key into the order of turns. A key that gave fewer than its share is passed over. `taken` is
 * what the first key has already given in its turn.
 */
export function inTurns<Row>(
  jobs: readonly (readonly Row[])[],
  weights: readonly number[],
  taken: number,
): Row[] {
  const ordered: Row[] = [];
  let count = 0;
  for (const rows of jobs) count += rows.length;
  const next = new Array<number>(jobs.length).fill(0);
  for (let already = taken; ordered.length < count; already = 0) {
    for (let index = 0; index < jobs.length; index++) {
      const rows = jobs[index] as readonly Row[];
      let at = next[index] as number;
      const to = Math.min(rows.length, at + (weights[index] as number) - (index === 0 ? already : 0));
      for (; at < to; at++) ordered.push(rows[at] as Row);
      next[index] = at;
    }
  }
  return ordered;
}
