import { type JobRow, priorityRank, type Rank } from "../job/job.ts";
import { type FairWeights, weightOf } from "./fair-options.ts";
import { fairKeyOf } from "./turns.ts";

/** How long a round of all keys may take if keys give several jobs in a turn. */
const ROUND = 100;
/** The rate is measured over this many jobs, and is unknown again after this long. */
const MEASURED = 256;
const MEASURED_WITHIN = 100;
const MOST_AT_ONCE = 64;

/**
 * How often keys of a fair queue give their weight in one turn. Jobs of one key lie together in a store, so a claim that
 * takes several of them writes fewer pages. On a queue so busy that a round of all keys takes a few milliseconds, nobody
 * waits longer for it. On every other queue the answer is 1. Times are monotonic milliseconds.
 */
export class RoundPace {
  #since = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #times = 1;
  #lastKey = "";
  /** The priority whose rounds are counted. */
  #rank: Rank = -1;
  /** The weights of the keys of this round so far, and of the last whole round. */
  #weights = 0;
  #weightsInRound = Number.POSITIVE_INFINITY;

  times(now: number): number {
    return now - this.#since > MEASURED_WITHIN ? 1 : this.#times;
  }

  /** These jobs were claimed, in the order of their turns. */
  note(rows: readonly JobRow[], now: number, weights: FairWeights): void {
    this.#count(rows, weights);
    this.#taken += rows.length;
    const elapsed = now - this.#since;
    if (elapsed > MEASURED_WITHIN) this.#times = 1;
    else if (this.#taken < MEASURED) return;
    else {
      const inRound = (ROUND * this.#taken) / Math.max(elapsed, 1);
      const once = Math.max(this.#weightsInRound, this.#weights);
      this.#times = Math.min(MOST_AT_ONCE, Math.max(1, Math.floor(inRound / once)));
    }
    this.#since = now;
    this.#taken = 0;
  }

  /** Keys have their turns in the order of their names, so a smaller one begins the next round. */
  #count(rows: readonly JobRow[], weights: FairWeights): void {
    for (const row of rows) {
      const key = fairKeyOf(row);
      const rank = priorityRank(row.rank);
      if (rank !== this.#rank) {
        this.#rank = rank;
        this.#weightsInRound = Number.POSITIVE_INFINITY;
        this.#weights = 0;
      }
      if (key === this.#lastKey && this.#weights > 0) continue;
      if (key < this.#lastKey) {
        this.#weightsInRound = this.#weights;
        this.#weights = 0;
      }
      this.#weights += weightOf(weights, key);
      this.#lastKey = key;
    }
  }
}
