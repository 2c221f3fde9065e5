import type { Random } from "../core/random.ts";

export interface Timer {
  cancel(): void;
}

/**
 * A clock that all processes of one machine share. A system without one has no such clock, and its processes share
 * only the wall clock.
 */
export interface MachineClock {
  /** Identifies this boot of the machine. */
  readonly boot: string;
  /** Milliseconds since the boot, equal in every process. Nobody can set it. It stops while the machine sleeps. */
  monotonic(): number;
  /** How long the machine has slept since its boot, in milliseconds, accurate to 10. */
  slept(): number;
}

/**
 * The clock, timers and randomness that an engine uses. Only `engine/runtime/real-system.ts` uses the real ones, so
 * the whole engine runs under virtual time in tests and in the simulator.
 */
export interface System {
  /** Milliseconds that never decrease, with fractions. Changes of the wall clock do not affect them. */
  monotonic(): number;
  /**
   * The largest error of the monotonic clock, as a fraction. The default is 100 parts per million: one quartz is
   * better than that, but the errors of two machines add up.
   */
  readonly drift?: number;
  /** The wall clock. Used only to notice that it moved differently from the monotonic clock. */
  wall(): number;
  readonly machine?: MachineClock;
  /** Whether time moves only when a test moves it. A store that waits for a disk or a network cannot use it. */
  readonly isVirtual?: boolean;
  /** Calls back once, never before `delay` ms have passed on the monotonic clock. Any delay works (SEMANTICS 1.3). */
  after(delay: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer;
  /** Calls back soon, after what is already queued. Callers use it to collect work into a batch without a timer. */
  soon(callback: () => void): void;
  readonly random: Random;
  fill(bytes: Uint8Array): void;
}

/**
 * The most characters of payloads to write or parse in one turn of the event loop. They take one or two milliseconds.
 */
export const CHARACTERS_PER_TURN = 1_000_000;

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
