import type { System, Timer } from "../../ports/system.ts";
import type { Loop } from "../runtime/loop.ts";

/** While something runs: often enough that a cancel is heard within a second where no hint arrives (SEMANTICS 5.1). */
export const BUSY_EVERY = 900;
export const IDLE_EVERY = 5_000;
/** The shortest rest between two beats, however short the heartbeat of a job is. */
export const SHORTEST_REST = 20;

/** Brings the next beat of a worker forward when its usual rest is too long. */
export class BeatPace {
  readonly #system: System;
  readonly #loop: Loop;
  #hurried: Timer | undefined;
  /** By `clock.elapsed()`. */
  #beganAt = 0;

  constructor(system: System, loop: Loop) {
    this.#system = system;
    this.#loop = loop;
  }

  began(now: number): void {
    this.#beganAt = now;
  }

  /** A worker that was idle rests for longer than a running job may wait for its cancel. */
  keepUp(now: number): void {
    if (now - this.#beganAt < BUSY_EVERY) return;
    this.#beganAt = now;
    this.#loop.wake();
  }

  /** A handler's own beat must arrive well before the last one that is known runs out. */
  hurry(heartbeat: number | null): void {
    const every = (heartbeat ?? BUSY_EVERY * 4) / 4;
    if (this.#hurried || every >= BUSY_EVERY) return;
    this.#hurried = this.#system.after(Math.max(SHORTEST_REST, every), () => {
      this.#hurried = undefined;
      this.#loop.wake();
    });
  }

  async stop(): Promise<void> {
    this.#hurried?.cancel();
    await this.#loop.stop();
  }
}
