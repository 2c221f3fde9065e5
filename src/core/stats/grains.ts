import type { Instant } from "../time.ts";

/** A width of the stretches of time that figures are kept in, and for how long they are kept so finely. */
export interface Grain {
  readonly kind: string;
  readonly span: number;
  readonly kept: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** From fine to coarse; what is no longer kept in one is added to the next, and deleted after the last. */
export const GRAINS: readonly Grain[] = [
  { kind: "stats.minute", span: MINUTE, kept: 3 * HOUR },
  { kind: "stats.hour", span: HOUR, kept: 8 * DAY },
  { kind: "stats.day", span: DAY, kept: 400 * DAY },
];

export const FINEST = GRAINS[0] as Grain;

/** Keys sort by time: thirteen digits last until the year 2286. */
const DIGITS = 13;

export function startOf(at: Instant, span: number): Instant {
  return Math.floor(at / span) * span;
}

/** The key before all keys of a stretch. */
export function keyBefore(start: Instant): string {
  return String(Math.max(0, start)).padStart(DIGITS, "0");
}

/** `part`: whose figures they are, or which slice of them. */
export function keyOf(start: Instant, part: string): string {
  return `${keyBefore(start)}/${part}`;
}

export function startOfKey(key: string): Instant {
  return Number(key.slice(0, DIGITS));
}

/** Whether a stretch that begins at `start` is to become part of one of the coarser grain by now, all of it at once. */
export function isDueForRollUp(start: Instant, grain: Grain, coarser: Grain, now: Instant): boolean {
  return startOf(start, coarser.span) + coarser.span + grain.kept <= now;
}
