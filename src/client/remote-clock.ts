import type { Instant } from "../core/time.ts";
import type { System } from "../ports/system.ts";

/** The wall clock running this far ahead of the monotonic one means that the machine slept. */
const WALL_DRIFT = 100;

/**
 * The server's time, learned from its replies: each says what time it was there at some moment between the sending of
 * the request and the arrival of the reply. In between, monotonic time goes on; the machine's own clock is never
 * trusted. What is due goes by the lower bound, so that nothing fires early (SEMANTICS 3.10).
 */
export class RemoteClock {
  readonly #system: System;
  /** Server time minus monotonic time: the truth lies between the two. */
  #lowerOffset: number;
  #upperOffset: number;
  #isMeasured = false;
  #lastNow = 0;
  #wallOffset: number;
  #lastAhead = Number.POSITIVE_INFINITY;
  #slept = 0;

  constructor(system: System) {
    this.#system = system;
    this.#wallOffset = system.wall() - system.monotonic();
    // Until the server has said something, only events carry this time, and no deadline depends on it.
    this.#lowerOffset = this.#wallOffset;
    this.#upperOffset = this.#wallOffset;
  }

  /** The earliest that it may be now. */
  now(): Instant {
    const at = Math.floor(this.#system.monotonic() + this.#lowerOffset);
    if (at > this.#lastNow) this.#lastNow = at;
    return this.#lastNow;
  }

  /** The latest that it may be now: monotonic time stands still while the machine sleeps. */
  upper(): Instant {
    const monotonic = this.#system.monotonic();
    const slept = this.#system.wall() - monotonic - this.#wallOffset;
    const ahead = slept > WALL_DRIFT ? slept : 0;
    return Math.ceil(monotonic + this.#upperOffset + ahead);
  }

  /** Learns from a reply. Every one is true, so of each bound the narrower holds, unless the clocks have parted. */
  observe(serverTime: Instant, sentAt: number, receivedAt: number): void {
    const lower = serverTime - receivedAt;
    // The server writes whole milliseconds, so the true time may be almost one later.
    const upper = serverTime + 1 - sentAt;
    const wallOffset = this.#system.wall() - this.#system.monotonic();
    const hasSlept = Math.abs(wallOffset - this.#wallOffset) > WALL_DRIFT;
    const haveParted =
      !this.#isMeasured || hasSlept || lower > this.#upperOffset || upper < this.#lowerOffset;
    if (!this.#isMeasured) this.#lastNow = 0;
    this.#isMeasured = true;
    this.#lowerOffset = haveParted ? lower : Math.max(lower, this.#lowerOffset);
    this.#upperOffset = haveParted ? upper : Math.min(upper, this.#upperOffset);
    this.#wallOffset = wallOffset;
  }

  /** Milliseconds that only grow and count a sleep of the machine too, which monotonic time leaves out. */
  elapsed(): number {
    const monotonic = this.#system.monotonic();
    const ahead = this.#system.wall() - monotonic;
    if (ahead - this.#lastAhead > WALL_DRIFT) this.#slept += ahead - this.#lastAhead;
    this.#lastAhead = ahead;
    return monotonic + this.#slept;
  }
}
