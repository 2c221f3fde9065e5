import type { Random } from "../core/random.ts";

/** A timer that can be taken back. */
export interface Timer {
  cancel(): void;
}

/**
 * The machine under an engine: its clock, its timers and its randomness. Only `engine/system.ts` touches the real
 * ones, so the whole engine runs under virtual time in tests and in the simulator.
 */
export interface System {
  /** Milliseconds that only grow; a jump of the wall clock does not touch them. Fractions count. */
  monotonic(): number;
  /** The wall clock, used for nothing but noticing that it and the monotonic one have parted. */
  wall(): number;
  /** Calls back once, never before `delay` ms have passed on the monotonic clock; any delay works (SEMANTICS 1.3). */
  after(delay: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer;
  /** Calls back soon, after what is already queued: how work is gathered into a batch without waiting for a timer. */
  soon(callback: () => void): void;
  readonly random: Random;
  /** Fills the array with random bytes. */
  fill(bytes: Uint8Array): void;
}
