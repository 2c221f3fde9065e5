import type { System, Timer } from "../../ports/system.ts";

const TICK = 100;
/** After a standstill longer than this nothing is entered before a beat was confirmed. */
const GAP = 250;

/**
 * Feels whether the event loop runs. While a worker is busy it ticks; a tick that comes late, or a look in between
 * that finds the last tick too long ago, means that the process stood still: blocked, suspended, or collecting garbage.
 */
export class LoopMonitor {
  readonly #system: System;
  readonly #elapsed: () => number;
  readonly #onTick: (now: number) => boolean;
  readonly #onGap: (gap: number) => void;
  #timer: Timer | undefined;
  #tickedAt = 0;
  #gapAt = Number.NEGATIVE_INFINITY;

  /** `elapsed` counts a sleep of the machine too; `onTick` answers whether there is still something to watch over. */
  constructor(
    system: System,
    elapsed: () => number,
    onTick: (now: number) => boolean,
    onGap: (gap: number) => void,
  ) {
    this.#system = system;
    this.#elapsed = elapsed;
    this.#onTick = onTick;
    this.#onGap = onGap;
  }

  start(): void {
    if (this.#timer) return;
    this.#tickedAt = this.#elapsed();
    this.#arm();
  }

  /** Whether the loop has run without a standstill since then, so that what arrives now is not old. */
  ranSince(since: number): boolean {
    return !this.isOverdue(this.#elapsed()) && this.#gapAt < since;
  }

  /** Whether the next tick is so late that the loop must be standing still, or has just begun to run again. */
  isOverdue(now: number): boolean {
    return now - this.#tickedAt > TICK + GAP;
  }

  #arm(): void {
    this.#timer = this.#system.after(TICK, () => this.#tick());
  }

  #tick(): void {
    const now = this.#elapsed();
    const gap = now - this.#tickedAt - TICK;
    this.#tickedAt = now;
    this.#timer = undefined;
    if (gap > GAP) {
      this.#gapAt = now;
      this.#onGap(gap);
    }
    if (this.#onTick(now)) this.start();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
