import { backoff } from "../core/pace.ts";
import type { System, Timer } from "../ports/system.ts";

/** How many loads in a row may fail before the module counts as broken. */
const OPENS_AFTER = 3;
const PROBE_BACKOFF = { first: 2_000, factor: 2, most: 5 * 60_000 };

/**
 * Keeps a module that cannot be loaded from failing all jobs of its queue. After `OPENS_AFTER` failures, jobs are
 * released, and a sandbox without a job is tried from time to time until one loads.
 */
export class Breaker {
  readonly #system: System;
  readonly #probe: () => void;
  #failures = 0;
  #opened = 0;
  #probesAt = 0;
  #timer: Timer | undefined;
  #reason: string | undefined;

  constructor(system: System, probe: () => void) {
    this.#system = system;
    this.#probe = probe;
  }

  get isOpen(): boolean {
    return this.#reason !== undefined;
  }

  refusal(): { reason: string; delay: number } | null {
    if (this.#reason === undefined) return null;
    const untilProbe = Math.max(0, this.#probesAt - this.#system.monotonic());
    // Shortly after the probe, and spread out.
    return { reason: this.#reason, delay: Math.round(untilProbe + 500 + 1_000 * this.#system.random()) };
  }

  /** Returns whether it has just opened. */
  failed(error: unknown): boolean {
    this.#failures += 1;
    const wasOpen = this.isOpen;
    if (this.#failures < OPENS_AFTER || this.#timer) return false;
    const says = error instanceof Error ? error.message : String(error);
    this.#reason = `the module cannot be loaded: ${says}`;
    const delay = backoff(++this.#opened, PROBE_BACKOFF);
    this.#probesAt = this.#system.monotonic() + delay;
    this.#timer = this.#system.after(delay, () => {
      this.#timer = undefined;
      this.#probe();
    });
    return !wasOpen;
  }

  /** Returns whether it has just closed. */
  loaded(): boolean {
    const wasOpen = this.isOpen;
    this.#failures = 0;
    this.#opened = 0;
    this.#reason = undefined;
    this.stop();
    return wasOpen;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
