import { Rounds } from "./round.ts";
import { ROUND_LIMITS, type RoundLimits } from "./round-limits.ts";

/** Measures how fast jobs of a fair queue start. Only a busy queue has rounds. Times are monotonic milliseconds. */
export class RoundPace {
  readonly #limits: RoundLimits;
  #since = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #isBusy = false;
  /** Those of a queue that is busy again go on: a key that gave its part of a round would otherwise have it twice. */
  readonly #rounds: Rounds;

  constructor(limits: RoundLimits = ROUND_LIMITS) {
    this.#limits = limits;
    this.#rounds = new Rounds(limits);
  }

  /** The rounds under way. Undefined: the queue is not busy, and keys have their turns one after the other. */
  rounds(now: number): Rounds | undefined {
    if (now - this.#since > this.#limits.longest) this.#isBusy = false;
    return this.#isBusy ? this.#rounds : undefined;
  }

  /** Notes that `count` jobs were claimed. */
  note(count: number, now: number): void {
    const { busyFrom, busyWithin, longest } = this.#limits;
    this.#taken += count;
    const elapsed = now - this.#since;
    if (this.#taken < busyFrom && elapsed <= busyWithin) return;
    const started = this.#taken / Math.max(elapsed, 1);
    this.#isBusy = started * busyWithin >= busyFrom;
    if (this.#isBusy) this.#rounds.most = longest * started;
    this.#since = now;
    this.#taken = 0;
  }
}
