import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";

const SAMPLE_EVERY = 30_000;
const SAMPLE_SOON = 1_000;
/** If the wall clock jumps this far against the monotonic one, it was set or the machine slept. */
const WALL_JUMP = 100;
/** `open` measures again while the bounds are wider than this, because wide bounds make every deadline late. */
const WIDE = 100;
const OPEN_SAMPLES = 5;
/** How far two clocks may drift apart, unless the system says otherwise: 100 parts per million. */
const DRIFT = 1e-4;
/**
 * After the store's clock was set, this clock follows it by this share of the passing time. NTP slews clocks at the same
 * rate. So running deadlines move by half a thousandth and not by the whole jump.
 */
const CREEP = 5e-4;
/**
 * The most that this clock may differ from the store's after a jump. Processes with different clocks take each other's
 * leases for lost, so a large jump is followed at once, although it moves running deadlines.
 */
const MOST_APART = 1_000;

/** At the monotonic time `at`, store time minus monotonic time was between `lower` and `upper`. */
interface Bounds {
  readonly at: number;
  readonly lower: number;
  readonly upper: number;
}

/** One reading of the time, in all meanings that the start of a job needs. */
export interface Moment {
  /** As `elapsed()`. */
  readonly elapsed: number;
  /** As `now()`. */
  readonly now: Instant;
  /** As `anchor()`. */
  readonly anchor: Instant;
  /** As `upper()`. */
  readonly upper: Instant;
  /** Whether the machine has slept since the last reading of the store's clock, so that `now` is too early. */
  readonly isBehind: boolean;
}

/**
 * The engine's time: the store's clock at the last reading plus monotonic time since (SEMANTICS 3.10). The round trip of
 * the reading gives a lower and an upper bound, whose distance grows with the age of the reading. The machine's own clock
 * is never trusted.
 */
export class EngineClock {
  readonly #system: System;
  readonly #store: Pick<Store, "clock">;
  readonly #drift: number;
  #bounds: Bounds = { at: 0, lower: Number.NEGATIVE_INFINITY, upper: Number.POSITIVE_INFINITY };
  /** How far the store's clock was ahead of this one after its last jump, and when that was measured. */
  #ahead = { by: 0, at: 0 };
  #lastNow = 0;
  #isSampling = false;
  /** Whether it is read again only when a caller asks for the time. */
  #readsWhenUsed = false;
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

  /** Reads the store's clock first, so that `now` is always based on a reading. */
  static async open(
    system: System,
    store: Pick<Store, "clock">,
    reads: "always" | "when-used" = "always",
  ): Promise<EngineClock> {
    const clock = new EngineClock(system, store);
    for (let samples = 0; samples < OPEN_SAMPLES; samples++) {
      await clock.sample();
      if (!clock.isWide) break;
    }
    if (reads === "always") clock.#rearm();
    else clock.#readsWhenUsed = true;
    return clock;
  }

  /** A clock without a store. It has no time until `learn` is called. */
  static unread(system: System): EngineClock {
    return new EngineClock(system, {
      clock: () => Promise.reject(new Error("this clock has no store to read")),
    });
  }

  /** The earliest time that it may be now. It decides what is due, so that nothing fires early. */
  now(): Instant {
    return this.#nowAt(this.#system.monotonic());
  }

  #nowAt(monotonic: number): Instant {
    if (this.#readsWhenUsed && monotonic - this.#bounds.at > SAMPLE_EVERY && !this.#isSampling)
      this.sample().catch(() => {});
    const at = Math.floor(monotonic + this.#lowerAt(monotonic) - this.#aheadBy(monotonic));
    if (at > this.#lastNow) this.#lastNow = at;
    return this.#lastNow;
  }

  /**
   * The latest millisecond that the store's clock may show now. Durations count from it, so they may end late but never
   * early. It leaves out a sleep of the machine until the clock is read again.
   */
  anchor(): Instant {
    const monotonic = this.#system.monotonic();
    return this.#anchorAt(monotonic, this.#nowAt(monotonic));
  }

  #anchorAt(monotonic: number, now: Instant): Instant {
    return Math.max(Math.ceil(this.#latestAt(monotonic)) - 1, now);
  }

  /** The latest time that it may be now. It decides whether a handler may be entered and whether a lease still holds. */
  upper(): Instant {
    const monotonic = this.#system.monotonic();
    return this.#upperSince(monotonic, this.#sleptSinceSample(monotonic));
  }

  #upperSince(monotonic: number, slept: number): Instant {
    // Monotonic time stops while the machine sleeps, so add the sleep.
    return Math.max(Math.ceil(this.#latestAt(monotonic) + slept), this.#lastNow);
  }

  /**
   * All of the above by one look at the machine's clocks: every job asks for them when it starts, and each look costs as
   * much as a rule.
   */
  moment(): Moment {
    const monotonic = this.#system.monotonic();
    const slept = this.#sleptSinceSample(monotonic);
    const now = this.#nowAt(monotonic);
    return {
      elapsed: monotonic + this.#slept,
      now,
      anchor: this.#anchorAt(monotonic, now),
      upper: this.#upperSince(monotonic, slept),
      isBehind: slept > WALL_JUMP,
    };
  }

  /** How long the machine has slept since the last reading. If it has, reads the clock again. */
  #sleptSinceSample(monotonic: number): number {
    const slept = this.#asleep(monotonic) - this.#sleptAtSample;
    if (slept > WALL_JUMP && !this.#isSampling) this.sample().catch(() => {});
    return slept;
  }

  /**
   * Reads the store's clock. A reading within the bounds makes them narrower. A reading outside means that the store's
   * clock was set: this clock follows it to within a second at once, and slowly for the rest.
   */
  async sample(): Promise<void> {
    this.#isSampling = true;
    const sentAt = this.#system.monotonic();
    const slept = this.#asleep();
    const instant = await this.#store.clock().finally(() => {
      this.#isSampling = false;
    });
    this.learn(instant, { sentAt, receivedAt: this.#system.monotonic(), slept });
    if (this.#asleep() - slept > WALL_JUMP) return this.sample();
    // A slow reading after a sleep leaves wide bounds. The next regular one may be half a minute away.
    if (this.isWide && this.#timer) this.#rearm();
  }

  /** Takes over a reading that was made between these two monotonic times. Remote workers get it from their server. */
  learn(
    instant: Instant,
    {
      sentAt,
      receivedAt,
      slept,
    }: { readonly sentAt: number; readonly receivedAt: number; readonly slept: number },
  ): void {
    // Ignore a reading that is older than the last one: a sleep between the two would be subtracted.
    if (sentAt < this.#bounds.at || slept < this.#sleptAtSample) return;
    // Ignore one during which the machine slept, too: the part of the sleep before the answer looks like a jump of the store's clock.
    if (this.#asleep() - slept > WALL_JUMP && Number.isFinite(this.#bounds.lower)) return;
    // Stores answer in whole milliseconds, so the true time may be almost 1 ms later.
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

  /** How long the machine has slept since the opening. Read it before a reading, for `learn`. */
  slept(): number {
    return this.#asleep();
  }

  /** Monotonic milliseconds, with the time that the machine slept. */
  elapsed(): number {
    const monotonic = this.#system.monotonic();
    return monotonic + this.#asleep(monotonic);
  }

  #lowerAt(monotonic: number): number {
    return this.#bounds.lower - this.#drifted(monotonic);
  }

  #upperAt(monotonic: number): number {
    return this.#bounds.upper + this.#drifted(monotonic);
  }

  #latestAt(monotonic: number): number {
    return monotonic + this.#upperAt(monotonic) - this.#aheadBy(monotonic);
  }

  /** How far the clocks may have drifted apart since the last reading. */
  #drifted(monotonic: number): number {
    return Math.max(0, monotonic - this.#bounds.at) * this.#drift;
  }

  /** How far this clock still has to follow a jump of the store's clock. */
  #aheadBy(monotonic: number): number {
    const { by, at } = this.#ahead;
    if (by === 0) return 0;
    const rest = Math.abs(by) - (monotonic - at) * CREEP;
    return rest > 0 ? Math.sign(by) * rest : 0;
  }

  /**
   * How long the machine has slept since the opening. The wall clock is cheap to read, so only a jump of it leads to a
   * question to the machine. A system that cannot answer counts every jump ahead as a sleep: then the worker confirms more
   * claims than it must, which is safe.
   */
  #asleep(monotonic = this.#system.monotonic()): number {
    const { machine } = this.#system;
    const wallOffset = this.#system.wall() - monotonic;
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
    // Wide bounds make deadlines late, so measure again soon.
    this.#timer = this.#system.after(this.isWide ? SAMPLE_SOON : SAMPLE_EVERY, () => {
      // If the store does not answer, the last reading stays valid with wider bounds.
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
