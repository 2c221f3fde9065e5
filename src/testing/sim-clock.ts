import { type Random, seededRandom } from "../core/random.ts";
import type { Instant } from "../core/time.ts";
import { realSystem } from "../engine/runtime/real-system.ts";
import type { System, Timer } from "../ports/system.ts";

/** A machine whose time stands still until a test moves it. */
export interface SimSystem extends System {
  /** Lets this much time pass. Timers run in the order in which they are due, including those set meanwhile. */
  advance(delay: number): Promise<void>;
  /** Runs everything that needs no time: promises, and callbacks of `soon`. */
  settle(): Promise<void>;
  /** Moves the wall clock. Timers do not notice. */
  stepWall(delay: number): void;
  /** Lets time pass while nothing runs, as SIGSTOP, a suspended laptop or a long garbage collection does. */
  pause(delay: number): void;
  readonly pendingTimers: number;
}

interface SimTimer extends Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** The same seed, start and calls always give the same run. */
export function createSimSystem(options: { readonly seed: number; readonly startAt: Instant }): SimSystem {
  return new Simulation(options.seed, options.startAt);
}

class Simulation implements SimSystem {
  readonly random: Random;
  /** Virtual time is exact. Tests count its milliseconds. */
  readonly drift = 0;
  readonly isVirtual = true;
  /**
   * Latest first, so that the next one is at the end. Of two that are due at the same time, the one set first runs
   * first.
   */
  readonly #timers: SimTimer[] = [];
  #soon: (() => void)[] = [];
  #monotonic = 0;
  #wallAhead: number;

  constructor(seed: number, startAt: Instant) {
    this.random = seededRandom(seed);
    this.#wallAhead = startAt;
  }

  get pendingTimers(): number {
    return this.#timers.length;
  }

  // Functions and not methods, because users of a system pass single ones on.
  readonly monotonic = (): number => this.#monotonic;

  readonly wall = (): number => this.#wallAhead + this.#monotonic;

  readonly after = (delay: number, callback: () => void): Timer => {
    const timer: SimTimer = {
      // Whole milliseconds, as real timers have. A fraction would shift every later deadline.
      dueAt: this.#monotonic + Math.max(0, Math.ceil(delay)),
      callback,
      cancel: () => this.#cancel(timer),
    };
    this.#timers.splice(this.#firstDueBy(timer.dueAt), 0, timer);
    return timer;
  };

  readonly soon = (callback: () => void): void => {
    this.#soon.push(callback);
  };

  readonly fill = (bytes: Uint8Array): void => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = this.random() * 256;
  };

  async advance(delay: number): Promise<void> {
    const target = this.#monotonic + delay;
    await this.settle();
    for (;;) {
      const next = this.#timers.at(-1);
      if (!next || next.dueAt > target) break;
      this.#timers.pop();
      this.#monotonic = Math.max(this.#monotonic, next.dueAt);
      next.callback();
      await this.settle();
    }
    this.#monotonic = Math.max(this.#monotonic, target);
  }

  /** One turn of the real event loop empties the promise queue, however long the chains are. */
  async settle(): Promise<void> {
    await nextTurn();
    while (this.#soon.length > 0) {
      const callbacks = this.#soon;
      this.#soon = [];
      for (const callback of callbacks) callback();
      await nextTurn();
    }
  }

  stepWall(delay: number): void {
    this.#wallAhead += delay;
  }

  pause(delay: number): void {
    this.#monotonic += delay;
  }

  #cancel(timer: SimTimer): void {
    let index = this.#firstDueBy(timer.dueAt);
    while (this.#timers[index]?.dueAt === timer.dueAt && this.#timers[index] !== timer) index += 1;
    if (this.#timers[index] === timer) this.#timers.splice(index, 1);
  }

  /** The index of the first timer that is due at this time or before. */
  #firstDueBy(dueAt: number): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#timers[middle] as SimTimer).dueAt > dueAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => realSystem.soon(resolve));
}
