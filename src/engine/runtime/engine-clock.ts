import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";

const SAMPLE_EVERY = 30_000;
const SAMPLE_SOON = 1_000;
/** A wall clock that jumps this far against the monotonic one was set, or the machine slept. */
const WALL_JUMP = 100;
/** Bounds wider than this are measured again at the opening: one slow answer would make everything late by as much. */
const WIDE = 100;
const OPEN_SAMPLES = 5;
/** How far two clocks may run apart if the system does not say: 100 parts per million. */
const DRIFT = 1e-4;
/**
 * A store's clock that was set is followed by so much of the time that passes, which is the rate at which NTP slews a
 * clock: a deadline under way then moves by half a thousandth, and not by the whole jump.
 */
const CREEP = 5e-4;
/**
 * And never from farther off than this. Processes that do not agree on the time take each other's leases for lost, so
 * beyond a second it is worth more to agree with the store than to spare the deadlines that are under way.
 */
const MOST_APART = 1_000;

/** Store time minus monotonic time lay between these two when monotonic time was `at`. */
interface Bounds {
  readonly at: number;
  readonly lower: number;
  readonly upper: number;
}

/**
 * The engine's time: the store's clock at the last reading plus monotonic time since (SEMANTICS 3.10). The round
 * trip of the reading gives a lower and an upper bound of what time it is, which part with the age of the reading; the
 * machine's own clock is never trusted.
 */
export class EngineClock {
  readonly #system: System;
  readonly #store: Pick<Store, "clock">;
  readonly #drift: number;
  #bounds: Bounds = { at: 0, lower: Number.NEGATIVE_INFINITY, upper: Number.POSITIVE_INFINITY };
  /** How far the store's clock was ahead of this one when it was seen to have been set, and when that was. */
  #ahead = { by: 0, at: 0 };
  #lastNow = 0;
  #isSampling = false;
  #lastWallOffset: number;
  readonly #sleptAtOpen: number;
  #slept = 0;
  #sleptAtSample = 0;
  #timer: Timer | undefined;

  private constructor(system: System, store: Pick<Store, "clock">) {
    this.#system = system;
    this.#store = store;
    this.#drift = system.drift ?? DRIFT;
    this.#lastWallOffset = system.wall() - system.monotonic();
    this.#sleptAtOpen = system.machine?.slept() ?? 0;
  }

  /** Reads the store's clock once, so that nothing ever runs on a time that was not measured. */
  static async open(system: System, store: Pick<Store, "clock">): Promise<EngineClock> {
    const clock = new EngineClock(system, store);
    for (let samples = 0; samples < OPEN_SAMPLES; samples++) {
      await clock.sample();
      if (!clock.isWide) break;
    }
    clock.#rearm();
    return clock;
  }

  /** A clock without a store: it knows no time until it learns one. */
  static unread(system: System): EngineClock {
    return new EngineClock(system, { clock: () => Promise.reject(new Error("there is no store to read")) });
  }

  /** The earliest that it may be now: what decides that something is due, so that nothing fires early. */
  now(): Instant {
    const monotonic = this.#system.monotonic();
    const at = Math.floor(monotonic + this.#lowerAt(monotonic) - this.#aheadBy(monotonic));
    if (at > this.#lastNow) this.#lastNow = at;
    return this.#lastNow;
  }

  /**
   * The latest millisecond that the store's clock may show now: durations count from it, so that they end late where the
   * time is not well known, and never early. A sleep of the machine is left out until the clock is read again.
   */
  anchor(): Instant {
    const monotonic = this.#system.monotonic();
    const at = Math.ceil(monotonic + this.#upperAt(monotonic) - this.#aheadBy(monotonic)) - 1;
    return Math.max(at, this.now());
  }

  /** The latest that it may be now: what decides whether a handler may still be entered, or a lease still holds. */
  upper(): Instant {
    const monotonic = this.#system.monotonic();
    // Monotonic time stands still while the machine sleeps: it is later than it seems by as much.
    const slept = this.#asleep() - this.#sleptAtSample;
    if (slept > WALL_JUMP && !this.#isSampling) this.sample().catch(() => {});
    const at = Math.ceil(monotonic + this.#upperAt(monotonic) - this.#aheadBy(monotonic) + slept);
    return Math.max(at, this.#lastNow);
  }

  /** Whether the machine has slept since the last reading, so that `now` is behind by as much; it is read again then. */
  isBehind(): boolean {
    if (this.#asleep() - this.#sleptAtSample <= WALL_JUMP) return false;
    if (!this.#isSampling) this.sample().catch(() => {});
    return true;
  }

  /**
   * Reads the store's clock. A reading that the last one allows makes the bounds narrower. One that it does not allow
   * means that the store's clock was set: this one follows it to within a second and creeps the rest of the way.
   */
  async sample(): Promise<void> {
    this.#isSampling = true;
    const sentAt = this.#system.monotonic();
    const slept = this.#asleep();
    const instant = await this.#store.clock().finally(() => {
      this.#isSampling = false;
    });
    this.learn(instant, { sentAt, receivedAt: this.#system.monotonic(), slept });
    // A slow reading after a sleep leaves wide bounds. The next regular one may be half a minute away.
    if (this.isWide && this.#timer) this.#rearm();
  }

  /** Learns from a reading that was made between these two instants of monotonic time, however it came here. */
  learn(
    instant: Instant,
    {
      sentAt,
      receivedAt,
      slept,
    }: { readonly sentAt: number; readonly receivedAt: number; readonly slept: number },
  ): void {
    // A later reading has overtaken this one, and a sleep between the two would be counted backwards.
    if (sentAt < this.#bounds.at || slept < this.#sleptAtSample) return;
    // Stores answer in whole milliseconds, so the true reading may be almost one later than what they said.
    const read: Bounds = { at: sentAt, lower: instant - receivedAt, upper: instant + 1 - sentAt };
    const earliest = this.#lowerAt(sentAt);
    const latest = this.#upperAt(sentAt) + slept - this.#sleptAtSample;
    const jump = Math.max(0, read.lower - latest) + Math.min(0, read.upper - earliest);
    if (jump === 0) {
      const lower = Math.max(read.lower, earliest);
      this.#bounds = { at: sentAt, lower, upper: Math.min(read.upper, latest) };
    } else {
      this.#bounds = read;
      const by = this.#aheadBy(receivedAt) + jump;
      this.#ahead = { by: Math.max(-MOST_APART, Math.min(by, MOST_APART)), at: receivedAt };
    }
    this.#sleptAtSample = slept;
  }

  /** How long the machine has slept so far, for a reading that is about to be made. */
  slept(): number {
    return this.#asleep();
  }

  /** Milliseconds that only grow and count a sleep of the machine too, which monotonic time leaves out. */
  elapsed(): number {
    return this.#system.monotonic() + this.#asleep();
  }

  #lowerAt(monotonic: number): number {
    return this.#bounds.lower - this.#drifted(monotonic);
  }

  #upperAt(monotonic: number): number {
    return this.#bounds.upper + this.#drifted(monotonic);
  }

  /** How far the clocks may have run apart since the last reading. */
  #drifted(monotonic: number): number {
    return Math.max(0, monotonic - this.#bounds.at) * this.#drift;
  }

  /** What is left of a jump of the store's clock that this one does not make with it. */
  #aheadBy(monotonic: number): number {
    const { by, at } = this.#ahead;
    if (by === 0) return 0;
    const rest = Math.abs(by) - (monotonic - at) * CREEP;
    return rest > 0 ? Math.sign(by) * rest : 0;
  }

  /**
   * How long the machine has slept since the opening. Looking at the wall clock costs nothing; whether a jump of it was
   * a sleep, the machine knows where it keeps such a clock. Where it does not, every jump ahead is taken for one: then
   * more is confirmed than need be, and nothing is lost.
   */
  #asleep(): number {
    const { machine } = this.#system;
    const wallOffset = this.#system.wall() - this.#system.monotonic();
    const jump = wallOffset - this.#lastWallOffset;
    this.#lastWallOffset = wallOffset;
    if (Math.abs(jump) <= WALL_JUMP) return this.#slept;
    const more = machine ? machine.slept() - this.#sleptAtOpen - this.#slept : jump;
    if (more > WALL_JUMP) this.#slept += more;
    return this.#slept;
  }

  /** Whether the time is known badly: the store is far away, or its last answer was slow. */
  get isWide(): boolean {
    return this.#bounds.upper - this.#bounds.lower > WIDE;
  }

  #rearm(): void {
    this.#timer?.cancel();
    // Wide bounds make things late, so they are not left standing for long.
    this.#timer = this.#system.after(this.isWide ? SAMPLE_SOON : SAMPLE_EVERY, () => {
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
