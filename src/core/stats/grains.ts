import type { Instant } from "../time.ts";

/** A width of the periods that are counted, and how long counts of this width are kept. */
export interface Grain {
  readonly kind: string;
  readonly span: number;
  readonly kept: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * From fine to coarse. Counts that are no longer kept in one grain are added to the next, and deleted after the last.
 */
export const GRAINS: readonly Grain[] = [
  { kind: "stats.minute", span: MINUTE, kept: 3 * HOUR },
  { kind: "stats.hour", span: HOUR, kept: 8 * DAY },
  { kind: "stats.day", span: DAY, kept: 400 * DAY },
];

export const FINEST = GRAINS[0] as Grain;

/** Keys sort by time. Thirteen digits last until the year 2286. */
const DIGITS = 13;

export function startOf(at: Instant, span: number): Instant {
  return Math.floor(at / span) * span;
}

/** A key that sorts before all keys of the period. */
export function keyBefore(start: Instant): string {
  return String(Math.max(0, start)).padStart(DIGITS, "0");
}

/** `part`: the engine that counted, or a slice of its counts. */
export function keyOf(start: Instant, part: string): string {
  return `${keyBefore(start)}/${part}`;
}

export function startOfKey(key: string): Instant {
  return Number(key.slice(0, DIGITS));
}

/**
 * Whether the period that begins at `start` is due to be added to the coarser grain. All periods of a coarser one are
 * due together.
 */
export function isDueForRollUp(start: Instant, grain: Grain, coarser: Grain, now: Instant): boolean {
  return startOf(start, coarser.span) + coarser.span + grain.kept <= now;
}
