import type { Random } from "../core/random.ts";

/** A timer that can be taken back. */
export interface Timer {
  cancel(): void;
}

/**
 * What all processes of one machine have in common. Where the operating system does not offer it, a system has none, and
 * processes agree on nothing but the wall clock.
 */
export interface MachineClock {
  /** Names this run of the machine, from one boot to the next. */
  readonly boot: string;
  /** Milliseconds since the boot, the same number in every process. Nobody can set it, and it stands still in a sleep. */
  monotonic(): number;
  /** How long the machine has slept since its boot, in milliseconds, to within 10. */
  slept(): number;
}

/**
 * The machine under an engine: its clock, its timers and its randomness. Only `engine/system.ts` touches the real
 * ones, so the whole engine runs under virtual time in tests and in the simulator.
 */
export interface System {
  /** Milliseconds that only grow; a jump of the wall clock does not touch them. Fractions count. */
  monotonic(): number;
  /**
   * How far the monotonic clock may run off in a second, as a share of it. 100 parts per million unless said otherwise:
   * quartzes are better, but those of two machines add up.
   */
  readonly drift?: number;
  /** The wall clock, used for nothing but noticing that it and the monotonic one have parted. */
  wall(): number;
  readonly machine?: MachineClock;
  /** Calls back once, never before `delay` ms have passed on the monotonic clock; any delay works (SEMANTICS 1.3). */
  after(delay: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer;
  /** Calls back soon, after what is already queued: how work is gathered into a batch without waiting for a timer. */
  soon(callback: () => void): void;
  readonly random: Random;
  /** Fills the array with random bytes. */
  fill(bytes: Uint8Array): void;
}

/** Characters of payloads that are written or parsed in one turn of the event loop: they take a millisecond or two. */
export const TEXT_OF_A_TURN = 1_000_000;

/** Resolves after the delay. The process stays alive meanwhile. */
export function rest(system: Pick<System, "after">, delay: number): Promise<void> {
  return new Promise((resolve) => void system.after(delay, resolve, { keepAlive: true }));
}

/**
 * Resolves when `done` has settled, and after the delay at the latest. A store that hangs must not delay a close, and the
 * process stays alive until the wait is over.
 */
export function within(system: Pick<System, "after">, delay: number, done: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = system.after(delay, resolve, { keepAlive: true });
    const end = () => {
      timer.cancel();
      resolve();
    };
    done.then(end, end);
  });
}
