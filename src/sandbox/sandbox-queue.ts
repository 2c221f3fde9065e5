import type { System, Timer } from "../ports/system.ts";

/** What an admitted attempt gets: a reserved sandbox, or the error of a sandbox that could not load. */
interface Reservation {
  readonly failure: { readonly error: unknown } | undefined;
  readonly timer: Timer;
}

/**
 * How long a sandbox is reserved, in milliseconds. Middleware runs between the admission and the run, and the run may
 * never come.
 */
const RESERVED_FOR = 1_000;

/** Jobs that wait for a sandbox before their attempt starts, and the reservations of admitted ones. */
export class SandboxQueue {
  readonly #system: System;
  readonly #onExpired: () => void;
  readonly #waiting = new Map<string, () => void>();
  readonly #reservations = new Map<string, Reservation>();
  #reserved = 0;

  constructor(system: System, onExpired: () => void) {
    this.#system = system;
    this.#onExpired = onExpired;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** The number of reserved sandboxes. */
  get reserved(): number {
    return this.#reserved;
  }

  wait(key: string, again: () => void): void {
    this.#waiting.set(key, again);
  }

  has(key: string): boolean {
    return this.#reservations.has(key);
  }

  /** Reserves a sandbox, or an error, for this job. */
  reserve(key: string, failure?: { readonly error: unknown }): void {
    const timer = this.#system.after(RESERVED_FOR, () => {
      this.take(key);
      this.#onExpired();
    });
    this.#reservations.set(key, { failure, timer });
    if (!failure) this.#reserved += 1;
  }

  /** Admits the first waiting job. Returns false if none waits. */
  admitFirst(failure?: { readonly error: unknown }): boolean {
    for (const [key, again] of this.#waiting) {
      this.#waiting.delete(key);
      this.reserve(key, failure);
      again();
      return true;
    }
    return false;
  }

  /** Calls all waiting jobs back without a sandbox. They find the refusal and its reason. */
  refuseAll(): void {
    for (const [key, again] of this.#waiting) {
      this.#waiting.delete(key);
      again();
    }
  }

  take(key: string): Reservation | undefined {
    const reservation = this.#reservations.get(key);
    if (!reservation) return undefined;
    reservation.timer.cancel();
    this.#reservations.delete(key);
    if (!reservation.failure) this.#reserved -= 1;
    return reservation;
  }

  dismiss(key: string): void {
    this.#waiting.delete(key);
    if (this.take(key)) this.#onExpired();
  }

  close(): void {
    this.#waiting.clear();
    for (const key of [...this.#reservations.keys()]) this.take(key);
  }
}
