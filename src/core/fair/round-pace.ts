import { Rounds } from "./round.ts";

/** How long a round of all keys may take if keys give several jobs in a turn. */
const ROUND = 250;
/** The rate is measured over this many jobs, and is unknown again after this long. */
const MEASURED = 256;
const MEASURED_WITHIN = 100;

/** Measures how fast jobs of a fair queue start. Only a busy queue has rounds. Times are monotonic milliseconds. */
export class RoundPace {
  #since = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #rounds: Rounds | undefined;

  /** The rounds under way. Undefined: the queue is not busy, and keys have their turns one after the other. */
  rounds(now: number): Rounds | undefined {
    if (now - this.#since > MEASURED_WITHIN) this.#rounds = undefined;
    return this.#rounds;
  }

  /** Notes that `count` jobs were claimed. */
  note(count: number, now: number): void {
    this.#taken += count;
    const elapsed = now - this.#since;
    if (elapsed > MEASURED_WITHIN) this.#rounds = undefined;
    else if (this.#taken < MEASURED) return;
    else {
      this.#rounds ??= new Rounds();
      this.#rounds.most = (ROUND * this.#taken) / Math.max(elapsed, 1);
    }
    this.#since = now;
    this.#taken = 0;
  }
}
