import { Temporal } from "temporal-polyfill";
import { findCalendar, type NamedCalendars } from "../calendar/business-calendar.ts";
import type { Instant } from "../time.ts";
import { type InstantSource, type Schedule, scheduleInstants } from "./expression.ts";
import { WorkingInstants } from "./working-instants.ts";

/** The instants of a schedule, on the working days of its calendar if it names one. */
export function instantsOf(schedule: Schedule, calendars: NamedCalendars | undefined): InstantSource {
  const all = scheduleInstants(schedule);
  if (schedule.calendar === undefined) return all;
  return new WorkingInstants(all, schedule, findCalendar(calendars, schedule.calendar, "calendar"));
}

/** An instant, and what a clock on the wall shows then. */
export interface CronInstant {
  readonly at: Instant;
  readonly local: string;
  readonly offset: string;
}

/** The next `count` instants of a schedule. */
export function preview(
  schedule: Schedule,
  from: Instant,
  count: number,
  calendars?: NamedCalendars,
): CronInstant[] {
  const instants = instantsOf(schedule, calendars);
  const found: CronInstant[] = [];
  for (let at = instants.after(from); at !== null && found.length < count; at = instants.after(at)) {
    const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(schedule.zone);
    found.push({ at, local: zoned.toPlainDateTime().toString(), offset: zoned.offset });
  }
  return found;
}
