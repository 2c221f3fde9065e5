import type { Home } from "../../core/home/cell.ts";
import { earlier, type Instant } from "../../core/time.ts";

/** Sweeps after a look that may leave homes out. Engines look about once a second; a store that nobody looks at is swept whole. */
const SWEEPS_PER_LOOK = 100;

interface Known {
  /** When something is due there next; undefined: not known. */
  next: Instant | null | undefined;
  /** Grows with each write by this process, which may be due earlier than `next`. */
  writes: number;
}

/**
 * When each home has something due, as far as this process knows: from its last sweep or look there, and that it has
 * written there since. So a sweep costs as many calls as homes have something due, whatever the number of homes. What
 * other processes made due is found by the next look.
 */
export class Wakes {
  readonly #known: Known[];
  #sweepsLeft = 0;

  constructor(homes: number) {
    this.#known = Array.from({ length: homes }, () => ({ next: undefined, writes: 0 }));
  }

  /** This process writes to a home. */
  wrote(home: Home): void {
    const known = this.#known[home] as Known;
    known.writes += 1;
    known.next = undefined;
  }

  looked(home: Home, next: Instant | null): void {
    this.#sweepsLeft = SWEEPS_PER_LOOK;
    const known = this.#known[home] as Known;
    if (known.next !== undefined) known.next = next;
  }

  /** The homes that a sweep visits, with what `swept` needs to know. */
  due(now: Instant): Map<Home, number> {
    const isWhole = this.#sweepsLeft <= 0;
    this.#sweepsLeft -= 1;
    const due = new Map<Home, number>();
    for (const [home, { next, writes }] of this.#known.entries())
      if (isWhole || next === undefined || (next !== null && next <= now)) due.set(home, writes);
    return due;
  }

  /** A home was swept. What was written during the sweep may be due earlier than the answer says. */
  swept(home: Home, next: Instant | null, writes: number | undefined): void {
    const known = this.#known[home] as Known;
    if (known.writes === writes) known.next = next;
  }

  /** When the first of these homes has something due. */
  next(except: ReadonlyMap<Home, unknown>): Instant | null {
    let first: Instant | null = null;
    for (const [home, { next }] of this.#known.entries())
      if (!except.has(home)) first = earlier(first, next ?? null);
    return first;
  }
}
