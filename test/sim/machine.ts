import { type Random, seededRandom } from "../../src/core/random.ts";
import type { System, Timer } from "../../src/ports/system.ts";
import type { Owner, Scheduled, Scheduler } from "./scheduler.ts";
import type { Trace } from "./trace.ts";

/** How long a wrong idea of the time can last: the engine reads the store's clock every 30 s, and readings can be slow. */
const READ_EVERY = 60_000;

interface MachineOptions {
  readonly name: string;
  readonly seed: number;
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  /** How fast its monotonic clock runs; anything but 1 is a broken machine. */
  readonly rate: number;
}

/** Readings of the clock can follow each other closely after a standstill. */
const KEPT_DOUBTS = 4;

/**
 * One operating-system process as the engine in it sees the world: its own monotonic clock, a wall clock that may be
 * wrong and may jump, and timers that are never early and often a little late. It can be paused and it can die, at
 * any point where it waits: then its timers and replies never come, and what it still tries to do has no effect.
 */
export class Machine implements System, Owner {
  readonly name: string;
  readonly random: Random;
  isDead = false;
  pausedUntil = 0;
  pendingTimers = 0;
  /** How long the last reading of the store's clock took: so far may the engine's time lag. */
  clockDoubt = 0;
  readonly #earlierDoubts: { readonly until: number; readonly took: number }[] = [];
  /** Its engine was closed in good order; handlers that ignored that may still run. */
  isClosed = false;
  /** The last pauses, so that the checker does not blame a process for what it could not do meanwhile. */
  readonly pauses: { readonly from: number; readonly to: number }[] = [];
  onDeath: () => void = () => {};
  readonly #scheduler: Scheduler;
  readonly #trace: Trace;
  readonly #bootedAt: number;
  #offset: number;
  readonly #rate: number;
  /** Apart from `random`, so that the engine's own draws do not depend on how late its timers are. */
  readonly #lateness: Random;
  #wallAhead: number;
  #sleptUntil = 0;
  #suspendedUntil = 0;

  constructor({ name, seed, scheduler, trace, rate }: MachineOptions) {
    this.name = name;
    this.random = seededRandom(seed);
    this.#lateness = seededRandom(seed ^ 0x5bd1e995);
    this.#scheduler = scheduler;
    this.#trace = trace;
    this.#bootedAt = scheduler.now;
    this.#offset = this.#lateness() * 1e6;
    this.#rate = rate;
    this.#wallAhead = (this.#lateness() - 0.5) * 600_000;
  }

  /** A reading of the store's clock reached this process. */
  heardClock(at: number, took: number): void {
    this.#earlierDoubts.push({ until: at, took: this.clockDoubt });
    if (this.#earlierDoubts.length > KEPT_DOUBTS) this.#earlierDoubts.shift();
    this.clockDoubt = took;
  }

  /** The widest that its clock was from then on: a call may have been made before the last reading arrived. */
  clockDoubtSince(at: number): number {
    const earlier = this.#earlierDoubts.filter(({ until }) => at <= until).map(({ took }) => took);
    return Math.max(this.clockDoubt, ...earlier);
  }

  // Functions and not methods, because those who use a system hand single ones of them on.
  readonly monotonic = (): number => this.#offset + (this.#scheduler.now - this.#bootedAt) * this.#rate;

  readonly wall = (): number => this.#wallAhead + this.#scheduler.now;

  readonly after = (delay: number, callback: () => void): Timer => {
    if (this.isDead) return { cancel: () => {} };
    if (Number.isNaN(delay)) throw new RangeError("a timer was set for NaN");
    this.pendingTimers += 1;
    const done = () => {
      if (!isOpen) return;
      isOpen = false;
      this.pendingTimers -= 1;
    };
    let isOpen = true;
    const dueAt = this.monotonic() + delay;
    const fire = () => {
      // A suspended machine's monotonic clock has stood still, and with it the timers that it drives.
      const rest = dueAt - this.monotonic();
      if (rest > 1e-3) {
        scheduled = this.#in(rest / this.#rate, fire);
        return;
      }
      done();
      callback();
    };
    let scheduled = this.#in(delay / this.#rate + this.#late(), fire);
    return {
      cancel: () => {
        done();
        scheduled.cancel();
      },
    };
  };

  readonly soon = (callback: () => void): void => {
    this.#in(0.01, callback);
  };

  readonly fill = (bytes: Uint8Array): void => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = this.random() * 256;
  };

  /** A wait of a handler: it is no timer of the engine. */
  sleep(delay: number): Promise<void> {
    return new Promise((resolve) => {
      if (!this.isDead) this.#in(delay, resolve);
    });
  }

  #in(delay: number, run: () => void): Scheduled {
    return this.#scheduler.after(delay, this, run);
  }

  #late(): number {
    const draw = this.#lateness();
    return draw < 0.9 ? draw : draw < 0.99 ? draw * 5 : draw * 40;
  }

  crash(why: string): void {
    if (this.isDead) return;
    this.isDead = true;
    this.#trace.add(this.name, `crashes: ${why}`);
    this.onDeath();
  }

  /** SIGSTOP, or a handler that blocks the event loop: time passes and nothing runs. */
  pause(delay: number, why: string): void {
    const { now } = this.#scheduler;
    const to = Math.max(this.pausedUntil, now + delay);
    this.pauses.push({ from: now, to });
    this.pausedUntil = to;
    this.#trace.add(this.name, `stands still for ${Math.round(delay)} ms: ${why}`);
  }

  /** A laptop that sleeps or a machine that is moved: its monotonic clock stands still too, and only the wall clock tells. */
  suspend(delay: number): void {
    const { now } = this.#scheduler;
    this.pause(delay, "suspended");
    // Two sleeps may overlap. The clock stands still once, and never goes back.
    this.#offset -= Math.max(0, now + delay - Math.max(now, this.#suspendedUntil)) * this.#rate;
    this.#suspendedUntil = Math.max(this.#suspendedUntil, now + delay);
    this.#sleptUntil = this.pausedUntil;
  }

  stepWall(delay: number): void {
    this.#wallAhead += delay;
    this.#trace.add(this.name, `wall clock jumps by ${Math.round(delay)} ms`);
  }

  /**
   * Whether the engine's clock may be behind by more than a reading takes: after a sleep it lags until it is read
   * again. Then it is late, which is allowed, and the checker does not hold lateness against it.
   */
  mayLag(since: number): boolean {
    return this.#sleptUntil > since - READ_EVERY;
  }

  /** For how long within this span the process stood still. */
  pausedWithin(from: number, to: number): number {
    return this.pauses.reduce(
      (sum, pause) => sum + Math.max(0, Math.min(to, pause.to) - Math.max(from, pause.from)),
      0,
    );
  }
}
