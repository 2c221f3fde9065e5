import type { JobRow } from "../job/job.ts";
import { type FairWeights, NO_FAIR_KEY, weightOf } from "./fair-options.ts";

/*
 * Deficit round robin over the fair keys of a queue. Keys have their turns in the order of their names, round and
 * round. In a turn a key gives as many jobs as its weight. The only state is the last turn, which each claimer keeps for
 * itself: there is nothing in the store that a crash could leave wrong.
 */

/** The key that had its turn last, and how many jobs it gave in it. */
export interface Turn {
  readonly key: string;
  readonly taken: number;
}

/** What a claim from a fair queue brings with it. */
export interface Turns extends FairWeights {
  /** Null: no turn yet, begin anywhere. */
  readonly last: Turn | null;
}

export function fairKeyOf({ fairKey }: Pick<JobRow, "fairKey">): string {
  return fairKey ?? NO_FAIR_KEY;
}

/** Whether the last key may give more jobs before the next one has its turn. */
export function hasTurn(turn: Turn, weights: FairWeights): boolean {
  return turn.taken < weightOf(weights, turn.key);
}

/** The last turn after these jobs were taken, in this order. */
export function turnAfter(last: Turn | null, rows: readonly JobRow[], weights: FairWeights): Turn | null {
  let turn = last;
  for (const row of rows) {
    const key = fairKeyOf(row);
    turn = turn?.key === key && hasTurn(turn, weights) ? { key, taken: turn.taken + 1 } : { key, taken: 1 };
  }
  return turn;
}

/**
 * How many of `room` jobs each key gives if all have enough, for keys with these weights in the order of their turns.
 * `taken` is what the first key has already given in its turn.
 */
export function shareOut(weights: readonly number[], room: number, taken: number): number[] {
  const sum = weights.reduce((all, weight) => all + weight, 0);
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
  const next = jobs.map(() => 0);
  const count = jobs.reduce((sum, rows) => sum + rows.length, 0);
  for (let already = taken; ordered.length < count; already = 0) {
    for (const [index, rows] of jobs.entries()) {
      const from = next[index] as number;
      const to = from + (weights[index] as number) - (index === 0 ? already : 0);
      for (const row of rows.slice(from, to)) ordered.push(row);
      next[index] = to;
    }
  }
  return ordered;
}
