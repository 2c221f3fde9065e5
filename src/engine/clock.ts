import type { Instant } from "../core/time.ts";
import type { Store } from "../ports/store.ts";
import type { System, Timer } from "../ports/system.ts";

const SAMPLE_EVERY = 30_000;
const WALL_DRIFT = 1_000;

/**
 * The engine's time: the store's clock at the last reading plus monotonic time since (SEMANTICS 3.10). The round
 * trip of the reading gives a lower and an upper bound of what time it is; the machine's own clock is never trusted.
 */
export class EngineClock {
  readonly #system: System;
  readonly #store: Pick<Store, "clock">;
  /** Store time minus monotonic time: true time lies between the two. */
  #lowerOffset = 0;
  #upperOffset = 0;
  #lastNow = 0;
  #lastUpper = 0;
  #wallOffset = 0;
  #timer: Timer | undefined;

  private constructor(system: System, store: Pick<Store, "clock">) {
    this.#system = system;
    this.#store = store;
  }

  /** Reads the store's clock once, so that nothing ever runs on a time that was not measured. */
  static async open(system: System, store: Pick<Store, "clock">): Promise<EngineClock> {
    const clock = new EngineClock(system, store);
    await clock.sample();
    clock.#rearm();
    return clock;
  }

  /** The earliest that it may be now: what decides that something is due, so that nothing fires early. */
  now(): Instant {
    const at = Math.floor(this.#system.monotonic() + this.#lowerOffset);
    if (at > this.#lastNow) this.#lastNow = at;
    return this.#lastNow;
  }

  /** The latest that it may be now: what decides whether a handler may still be entered, or a lease still holds. */
  upper(): Instant {
    const at = Math.ceil(this.#system.monotonic() + this.#upperOffset);
    if (at > this.#lastUpper) this.#lastUpper = at;
    return this.#lastUpper;
  }

  async sample(): Promise<void> {
    const sentAt = this.#system.monotonic();
    const instant = await this.#store.clock();
    const receivedAt = this.#system.monotonic();
    this.#lowerOffset = instant - receivedAt;
    // Stores answer in whole milliseconds, so the true reading may be almost one later than what they said.
    this.#upperOffset = instant + 1 - sentAt;
    this.#wallOffset = this.#system.wall() - receivedAt;
  }

  /** Whether the wall clock jumped against the monotonic one: a sign of a suspend, after which the offset is measured anew. */
  hasDrifted(): boolean {
    return Math.abs(this.#system.wall() - this.#system.monotonic() - this.#wallOffset) > WALL_DRIFT;
  }

  #rearm(): void {
    this.#timer = this.#system.after(SAMPLE_EVERY, () => {
      // A store that does not answer leaves the old offset in force; monotonic time goes on without it.
      this.sample()
        .catch(() => {})
        .finally(() => this.#timer && this.#rearm());
    });
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
