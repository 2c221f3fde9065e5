import { Temporal } from "temporal-polyfill";
import { refuse } from "../errors.ts";
import type { Instant } from "../time.ts";

/** A day of the calendar, as whole days since 1970-01-01. Day arithmetic is then plain arithmetic. */
export type DayNumber = number;

const DAY = 86_400_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Reads `"2030-01-31"`. */
export function parseDay(date: unknown, field: string): DayNumber {
  const at = typeof date === "string" && DATE.test(date) ? Date.parse(`${date}T00:00:00Z`) : Number.NaN;
  // Date.parse turns 30 February into a day of March.
  if (!Number.isNaN(at) && dayText(at / DAY) === date) return at / DAY;
  throw refuse("invalid_when", field, date, 'write a day of the calendar such as "2030-01-31"');
}

export function dayText(day: DayNumber): string {
  return new Date(day * DAY).toISOString().slice(0, 10);
}

/** 0 is Sunday, as in JavaScript. */
export function weekdayOf(day: DayNumber): number {
  return (((day + 4) % 7) + 7) % 7;
}

/** The day that a calendar on the wall of this zone shows at an instant. */
export function dayIn(zone: string, at: Instant): DayNumber {
  const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
  return Date.parse(`${zoned.toPlainDate().toString()}T00:00:00Z`) / DAY;
}

/** The local time of a second of the day: `"2030-01-31T17:00:00"`. 86,400 is midnight of the next day. */
export function localAt(day: DayNumber, seconds: number): string {
  return new Date(day * DAY + seconds * 1_000).toISOString().slice(0, 19);
}
