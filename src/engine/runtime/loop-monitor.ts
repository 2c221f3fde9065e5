import type { System, Timer } from "../../ports/system.ts";

const TICK = 100;
/** After the loop was blocked for longer than this, the worker confirms its claims before it enters a job. */
const GAP = 250;

/**
 * Finds out whether the event loop was blocked, for example by a handler, a suspended process or a garbage collection.
 * While a worker is busy, a timer ticks. A tick that is late, or overdue at a check in between, means that it was.
 */
export class LoopMonitor {
  readonly #system: System;
  readonly #elapsed: () => number;
  readonly #onTick: (now: number) => boolean;
  readonly #onGap: (gap: number) => void;
  #timer: Timer | undefined;
  #tickedAt = 0;
  #gapAt = Number.NEGATIVE_INFINITY;

  /** `elapsed` includes sleeps of the machine. `onTick` returns whether the worker is still busy. */
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

  /** Whether the loop was not blocked since then: then an answer that arrives now is not old. */
  ranSince(since: number): boolean {
    return !this.isOverdue(this.#elapsed()) && this.#gapAt < since;
  }

  /** Whether the next tick is late by more than `GAP`: the loop was blocked until now. */
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
