import type { Random } from "./random.ts";

/* Delays of loops and of tries at a store. Retries of jobs: core/job/policy/retry.ts. */

export interface BackoffOptions {
  /** Milliseconds after the first failed try. */
  readonly first: number;
  /** Each further delay is this many times as long as the one before it. */
  readonly factor: number;
  /** No delay is longer than this many milliseconds. */
  readonly most: number;
}

/** Returns how many milliseconds to wait after this many failed tries in a row; `tries` begins at 1. */
export function backoff(tries: number, { first, factor, most }: BackoffOptions): number {
  return Math.min(first * factor ** (tries - 1), most);
}

/**
 * Returns the delay, up to a quarter shorter or longer. Without this, processes that began together would ask the store
 * together for ever. Retries of jobs have a jitter of their own (SEMANTICS 4.1).
 */
export function jittered(delay: number, random: Random): number {
  return delay * (0.75 + 0.5 * random());
}
