import type { Instant } from "../core/time.ts";
import type { Store } from "../ports/store.ts";
import type { System, Timer } from "../ports/system.ts";

const SAMPLE_EVERY = 30_000;
const SAMPLE_SOON = 1_000;
/** The wall clock running this far ahead of the monotonic one means that the machine slept. */
const WALL_DRIFT = 100;
/** Bounds wider than this are measured again at the opening: one slow answer would make everything late by as much. */
const WIDE = 100;
const OPEN_SAMPLES = 5;

/**
 * The engine's time: the store's clock at the last reading plus monotonic time since (SEMANTICS 3.10). The round
 * trip of the reading gives a lower and an upper bound of what time it is; the machine's own clock is never trusted.
 */
export class EngineClock {
  readonly #system: System;
  readonly #store: Pick<Store, "clock">;
  /** Store time minus monotonic time: true time lies between the two. */
  #lowerOffset = Number.NEGATIVE_INFINITY;
  #upperOffset = Number.POSITIVE_INFINITY;
  #lastNow = 0;
  #wallOffset = 0;
  #isSampling = false;
  #lastAhead = Number.POSITIVE_INFINITY;
  #slept = 0;
  #timer: Timer | undefined;

  private constructor(system: System, store: Pick<Store, "clock">) {
    this.#system = system;
    this.#store = store;
  }

  /** Reads the store's clock once, so that nothing ever runs on a time that was not measured. */
  static async open(system: System, store: Pick<Store, "clock">): Promise<EngineClock> {
    const clock = new EngineClock(system, store);
    for (let samples = 0; samples < OPEN_SAMPLES; samples++) {
      await clock.sample();
      if (clock.#upperOffset - clock.#lowerOffset <= WIDE) break;
    }
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
    const monotonic = this.#system.monotonic();
    // Monotonic time stands still while the machine sleeps: where the wall clock ran ahead, it is later than it seems.
    const slept = this.#system.wall() - monotonic - this.#wallOffset;
    if (slept > WALL_DRIFT && !this.#isSampling) this.sample().catch(() => {});
    return Math.ceil(monotonic + this.#upperOffset + Math.max(0, slept));
  }

  /** Reads the store's clock. Every reading is true, so of each bound the narrower holds, unless the clocks have parted. */
  async sample(): Promise<void> {
    this.#isSampling = true;
    const sentAt = this.#system.monotonic();
    const wallAt = this.#system.wall();
    const instant = await this.#store.clock().finally(() => {
      this.#isSampling = false;
    });
    const lower = instant - this.#system.monotonic();
    // Stores answer in whole milliseconds, so the true reading may be almost one later than what they said.
    const upper = instant + 1 - sentAt;
    const hasSlept = Math.abs(wallAt - sentAt - this.#wallOffset) > WALL_DRIFT;
    const haveParted = hasSlept || lower > this.#upperOffset || upper < this.#lowerOffset;
    this.#lowerOffset = haveParted ? lower : Math.max(lower, this.#lowerOffset);
    this.#upperOffset = haveParted ? upper : Math.min(upper, this.#upperOffset);
    this.#wallOffset = wallAt - sentAt;
  }

  /**
   * Milliseconds that only grow and count a sleep of the machine too, which monotonic time leaves out. A jump of the
   * wall clock looks like a sleep: whoever asks for confirmation after one has lost nothing.
   */
  elapsed(): number {
    const monotonic = this.#system.monotonic();
    const ahead = this.#system.wall() - monotonic;
    if (ahead - this.#lastAhead > WALL_DRIFT) this.#slept += ahead - this.#lastAhead;
    this.#lastAhead = ahead;
    return monotonic + this.#slept;
  }

  #rearm(): void {
    // Wide bounds make things late, so they are not left standing for long.
    const isWide = this.#upperOffset - this.#lowerOffset > WIDE;
    this.#timer = this.#system.after(isWide ? SAMPLE_SOON : SAMPLE_EVERY, () => {
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
