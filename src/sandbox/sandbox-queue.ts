import type { System, Timer } from "../ports/system.ts";

/** What an admitted attempt finds: a sandbox that is kept for it, or the error of the one that could not load. */
interface Pass {
  readonly failure: { readonly error: unknown } | undefined;
  readonly timer: Timer;
}

/** Middleware stands between the admission and the run; a sandbox is not kept for ever for what may never come. */
const KEPT_FOR = 1_000;

/** Jobs that wait for a sandbox before their attempt starts, and those that were just let through. */
export class SandboxQueue {
  readonly #system: System;
  readonly #onExpired: () => void;
  readonly #waiting = new Map<string, () => void>();
  readonly #passes = new Map<string, Pass>();
  #kept = 0;

  constructor(system: System, onExpired: () => void) {
    this.#system = system;
    this.#onExpired = onExpired;
  }

  /** How many jobs wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** How many sandboxes are kept for jobs that were let through. */
  get kept(): number {
    return this.#kept;
  }

  wait(key: string, again: () => void): void {
    this.#waiting.set(key, again);
  }

  has(key: string): boolean {
    return this.#passes.has(key);
  }

  /** Keeps a sandbox, or an error, for this job. */
  pass(key: string, failure?: { readonly error: unknown }): void {
    const timer = this.#system.after(KEPT_FOR, () => {
      this.take(key);
      this.#onExpired();
    });
    this.#passes.set(key, { failure, timer });
    if (!failure) this.#kept += 1;
  }

  /** Lets the first that waits through; false if nobody waits. */
  passFirst(failure?: { readonly error: unknown }): boolean {
    for (const [key, again] of this.#waiting) {
      this.#waiting.delete(key);
      this.pass(key, failure);
      again();
      return true;
    }
    return false;
  }

  /** Lets all look again without a sandbox: they are refused, and told why. */
  turnAway(): void {
    for (const [key, again] of this.#waiting) {
      this.#waiting.delete(key);
      again();
    }
  }

  take(key: string): Pass | undefined {
    const pass = this.#passes.get(key);
    if (!pass) return undefined;
    pass.timer.cancel();
    this.#passes.delete(key);
    if (!pass.failure) this.#kept -= 1;
    return pass;
  }

  dismiss(key: string): void {
    this.#waiting.delete(key);
    if (this.take(key)) this.#onExpired();
  }

  close(): void {
    this.#waiting.clear();
    for (const key of [...this.#passes.keys()]) this.take(key);
  }
}
