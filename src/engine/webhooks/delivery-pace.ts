import type { System } from "../../ports/system.ts";

/** Calls that end within this time of each other share a commit, in milliseconds. */
const TOGETHER = 25;

/**
 * Spreads the work of deliveries, which come in bursts, so that requests to the same process come in between and find a
 * store that is not busy with one small commit after the other.
 */
export class DeliveryPace {
  readonly #system: Pick<System, "soon" | "after">;
  readonly #starting: (() => void)[] = [];
  #isStarting = false;
  #ended: (() => void)[] = [];

  constructor(system: Pick<System, "soon" | "after">) {
    this.#system = system;
  }

  /** Resolves for one caller in each turn of the event loop, in the order in which they came. */
  started(): Promise<void> {
    return new Promise((resolve) => {
      this.#starting.push(resolve);
      if (this.#isStarting) return;
      this.#isStarting = true;
      this.#system.soon(() => this.#next());
    });
  }

  #next(): void {
    this.#starting.shift()?.();
    this.#isStarting = this.#starting.length > 0;
    if (this.#isStarting) this.#system.soon(() => this.#next());
  }

  /** Resolves together with others that ended a moment before. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      this.#ended.push(resolve);
      if (this.#ended.length > 1) return;
      const end = () => {
        for (const done of this.#ended.splice(0)) done();
      };
      this.#system.after(TOGETHER, end, { keepAlive: true });
    });
  }
}
