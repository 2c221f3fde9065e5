import type { JobRow } from "../job/job.ts";
import { fairKeyOf } from "./turns.ts";

/** How long a round of all keys may take if keys give several jobs in a turn. */
const ROUND = 25;
/** The rate is measured over this many jobs, and is unknown again after this long. */
const MEASURED = 256;
const MEASURED_WITHIN = 100;
const MOST_AT_ONCE = 16;

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
  #keys = 0;
  /** The keys of the last whole round. */
  #keysInRound = Number.POSITIVE_INFINITY;

  times(now: number): number {
    return now - this.#since > MEASURED_WITHIN ? 1 : this.#times;
  }

  /** These jobs were claimed, in the order of their turns. */
  note(rows: readonly JobRow[], now: number): void {
    this.#count(rows);
    this.#taken += rows.length;
    const elapsed = now - this.#since;
    if (elapsed > MEASURED_WITHIN) this.#times = 1;
    else if (this.#taken < MEASURED) return;
    else {
      const inRound = (ROUND * this.#taken) / Math.max(elapsed, 1);
      const keys = Math.max(this.#keysInRound, this.#keys);
      this.#times = Math.min(MOST_AT_ONCE, Math.max(1, Math.floor(inRound / keys)));
    }
    this.#since = now;
    this.#taken = 0;
  }

  /** Keys have their turns in the order of their names, so a smaller one begins the next round. */
  #count(rows: readonly JobRow[]): void {
    for (const row of rows) {
      const key = fairKeyOf(row);
      if (key === this.#lastKey && this.#keys > 0) continue;
      if (key < this.#lastKey) {
        this.#keysInRound = this.#keys;
        this.#keys = 0;
      }
      this.#keys += 1;
      this.#lastKey = key;
    }
  }
}
