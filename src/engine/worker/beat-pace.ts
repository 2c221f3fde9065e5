import type { System, Timer } from "../../ports/system.ts";
import { Loop, type LoopOptions } from "../runtime/loop.ts";

/** Rest between beats while a job runs. A worker that receives no hint learns of a cancel within a second (SEMANTICS 5.1). */
export const BUSY_EVERY = 900;
export const IDLE_EVERY = 5_000;
/** The shortest rest between two beats, even if a job has a shorter heartbeat. */
export const SHORTEST_REST = 20;

/** The beat loop of a worker. It wakes early when its usual rest is too long for a running job. */
export class BeatPace {
  readonly loop: Loop;
  readonly #system: System;
  #hurried: Timer | undefined;
  /** By `clock.elapsed()`. */
  #beganAt = 0;

  constructor(options: Pick<LoopOptions, "system" | "logger" | "round" | "onError">) {
    this.#system = options.system;
    this.loop = new Loop({ name: "beat", keepAlive: true, ...options });
  }

  began(now: number): void {
    this.#beganAt = now;
  }

  /** Beats now if the last beat is too old: a loop that went idle still rests for `IDLE_EVERY`. */
  keepUp(now: number): void {
    if (now - this.#beganAt < BUSY_EVERY) return;
    this.#beganAt = now;
    this.loop.wake();
  }

  /** Sends a handler's beat within a quarter of its heartbeat, long before the stored `stallAt`. */
  hurry(heartbeat: number | null): void {
    const every = (heartbeat ?? BUSY_EVERY * 4) / 4;
    if (this.#hurried || every >= BUSY_EVERY) return;
    this.#hurried = this.#system.after(Math.max(SHORTEST_REST, every), () => {
      this.#hurried = undefined;
      this.loop.wake();
    });
  }

  async stop(): Promise<void> {
    this.#hurried?.cancel();
    await this.loop.stop();
  }
}
