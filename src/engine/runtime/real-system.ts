import { randomFillSync } from "node:crypto";
import type { System, Timer } from "../../ports/system.ts";

/** Node fires timers with a longer delay at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** The real clock, timers and randomness. Nothing else in the product reads them. */
export const realSystem: System = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  after: (delay, callback, options) => new RealTimer(delay, callback, options?.keepAlive ?? false),
  soon: (callback) => void setImmediate(callback),
  random: Math.random,
  fill: (bytes) => void randomFillSync(bytes),
};

class RealTimer implements Timer {
  readonly #firesAt: number;
  readonly #callback: () => void;
  readonly #keepAlive: boolean;
  #handle: NodeJS.Timeout | undefined;

  constructor(delay: number, callback: () => void, keepAlive: boolean) {
    this.#firesAt = performance.now() + delay;
    this.#callback = callback;
    this.#keepAlive = keepAlive;
    this.#arm(delay);
  }

  #arm(delay: number): void {
    // Node may fire a timer up to 1 ms early. `#fire` waits for the rest.
    this.#handle = setTimeout(() => this.#fire(), Math.min(Math.ceil(delay), LONGEST_TIMER));
    if (!this.#keepAlive) this.#handle.unref();
  }

  #fire(): void {
    const rest = this.#firesAt - performance.now();
    if (rest > 0) this.#arm(rest);
    else this.#callback();
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }
}
