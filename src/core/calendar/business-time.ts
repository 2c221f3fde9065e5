import { refuse, refuseRange, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import type { Instant } from "../time.ts";
import {
  checkPolicy,
  type GapPolicy,
  type OverlapPolicy,
  type ResolvedClock,
  resolveBent,
  resolveWallClock,
  type WallClock,
} from "../timeout/wall-clock.ts";
import {
  type BusinessCalendar,
  findCalendar,
  firstOpen,
  type Hours,
  hoursOn,
  lastOpen,
  type NamedCalendars,
} from "./business-calendar.ts";
import { type DayNumber, dayIn, dayText, localAt, parseDay } from "./calendar-date.ts";

/**
 * A time by a business calendar: `{ calendar: "frankfurt", workingDays: 2, at: "17:00", cutOff: "15:00" }` is 17:00 on
 * the second working day after today, or after the next working day if it is past 15:00 or closed now.
 */
export interface BusinessTimeInput {
  /** The name of a stored calendar. */
  readonly calendar: string;
  /**
   * Working days after today, or after `date`. Below 0, with `date`: before it. Left out, without `date`: the next
   * time that it is `at` on a working day.
   */
  readonly workingDays?: number;
  /** `"17:00"`, `"open"` or `"close"` (default). A day that closes earlier ends it then, one that opens later begins it. */
  readonly at?: string;
  /** From this time of day on, today no longer counts as day 0. Default: the closing of the day. */
  readonly cutOff?: string;
  /** Count from this day instead of today. A closed day stands for the next working day, or for the one before. */
  readonly date?: string;
  readonly gap?: GapPolicy;
  readonly overlap?: OverlapPolicy;
}

/** The stored form. The instant is computed from it again when the calendar or the zone data changes. */
export interface BusinessTime extends WallClock {
  readonly calendar: string;
  /** When it was asked for: today, and whether the cut-off had passed, follow from it. */
  readonly from: Instant;
  readonly workingDays: number | null;
  /** Seconds after midnight, or the opening or closing of that day. */
  readonly at: number | "open" | "close";
  readonly cutOff: number | null;
  readonly date: string | null;
}

/** How a time by a calendar became a day. */
export interface ResolvedDay {
  /** The day from which working days were counted; null if none were. */
  readonly dayZero: DayNumber | null;
  /** Whether today no longer counted: it was closed, or the cut-off had passed. */
  readonly isTodayOver: boolean;
  readonly day: DayNumber;
  readonly seconds: number;
}

const KEYS = keysOf<BusinessTimeInput>({
  calendar: true,
  workingDays: true,
  at: true,
  cutOff: true,
  date: true,
  gap: true,
  overlap: true,
});
const TIME = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;
/** Four years of working days. More is a typing error. */
const MOST_WORKING_DAYS = 1_000;

type Ask = Omit<BusinessTime, keyof WallClock>;

/** Checks what a user wrote, and finds the local time that it means at `now`. */
export function parseBusinessTime(
  input: BusinessTimeInput,
  now: Instant,
  field: string,
  calendars: NamedCalendars | undefined,
): { readonly time: BusinessTime; readonly resolved: ResolvedClock; readonly day: ResolvedDay } {
  refuseUnknownKeys(input, field, KEYS);
  const calendar = findCalendar(calendars, input.calendar, `${field}.calendar`);
  const { workingDays = null, date = null } = input;
  if (date !== null) parseDay(date, `${field}.date`);
  checkWorkingDays(workingDays, date, `${field}.workingDays`);
  const ask: Ask = {
    calendar: input.calendar,
    from: now,
    workingDays: workingDays ?? (date === null ? null : 0),
    at: parseAt(input.at ?? "close", `${field}.at`),
    cutOff: parseCutOff(input, `${field}.cutOff`),
    date,
  };
  const day = resolveDay(calendar, ask, field);
  const clock: WallClock = {
    local: localAt(day.day, day.seconds),
    zone: calendar.zone,
    gap: checkPolicy(input.gap, "later", `${field}.gap`),
    overlap: checkPolicy(input.overlap, "earlier", `${field}.overlap`),
  };
  return { time: { ...clock, ...ask }, resolved: resolveWallClock(clock, field), day };
}

function checkWorkingDays(days: number | null, date: string | null, field: string): void {
  if (days === null) return;
  if (!Number.isInteger(days) || Math.abs(days) > MOST_WORKING_DAYS)
    throw refuse("invalid_when", field, days, `use whole days from 0 to ${MOST_WORKING_DAYS}`);
  if (days < 0 && date === null)
    throw refuseRange("invalid_when", field, days, "count forward, or name the date to count back from");
}

function parseAt(at: unknown, field: string): BusinessTime["at"] {
  if (at === "open" || at === "close") return at;
  const seconds = secondsOf(at);
  if (seconds !== null) return seconds;
  throw refuse("invalid_when", field, at, 'write a time of day such as "17:00", or "open" or "close"');
}

function parseCutOff({ cutOff, workingDays, date }: BusinessTimeInput, field: string): number | null {
  if (cutOff === undefined) return null;
  if (workingDays === undefined || date !== undefined)
    throw refuse(
      "invalid_when",
      field,
      cutOff,
      "it says until when today counts: use it with workingDays, without date",
    );
  const seconds = secondsOf(cutOff);
  if (seconds !== null) return seconds;
  throw refuse("invalid_when", field, cutOff, 'write a time of day such as "15:00"');
}

function secondsOf(text: unknown): number | null {
  const [all, hours, minutes, seconds = "0"] = typeof text === "string" ? (TIME.exec(text) ?? []) : [];
  return all === undefined ? null : Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
}

/** Finds the day and the time of day (SEMANTICS 12.2). Instants are compared, so a clock change on the day changes nothing. */
function resolveDay(calendar: BusinessCalendar, ask: Ask, field: string): ResolvedDay {
  const { workingDays, date, from, at, cutOff } = ask;
  const onDay = (day: DayNumber, more: Pick<ResolvedDay, "dayZero" | "isTodayOver">): ResolvedDay => ({
    ...more,
    day,
    seconds: within(hoursOn(calendar, day) as Hours, at),
  });
  const step = (dayZero: DayNumber, isTodayOver: boolean): ResolvedDay =>
    onDay(stepped(calendar, dayZero, workingDays as number, field), { dayZero, isTodayOver });
  if (date !== null) {
    const named = parseDay(date, `${field}.date`);
    return step(
      (workingDays as number) < 0 ? lastOpen(calendar, named, field) : firstOpen(calendar, named, field),
      false,
    );
  }
  const today = dayIn(calendar.zone, from);
  const isPast = (day: DayNumber, seconds: number) =>
    resolveBent({ ...FIXED, zone: calendar.zone, local: localAt(day, seconds) }).at <= from;
  if (workingDays !== null) {
    const hours = hoursOn(calendar, today);
    const isTodayOver = hours === null || isPast(today, Math.min(cutOff ?? hours.closes, hours.closes));
    return step(isTodayOver ? firstOpen(calendar, today + 1, field) : today, isTodayOver);
  }
  for (let day = firstOpen(calendar, today, field); ; day = firstOpen(calendar, day + 1, field)) {
    const found = onDay(day, { dayZero: null, isTodayOver: false });
    if (!isPast(day, found.seconds)) return found;
  }
}

const FIXED = { gap: "later", overlap: "earlier" } as const;

function within({ opens, closes }: Hours, at: BusinessTime["at"]): number {
  if (at === "open") return opens;
  return at === "close" ? closes : Math.min(Math.max(at, opens), closes);
}

function stepped(calendar: BusinessCalendar, from: DayNumber, days: number, field: string): DayNumber {
  let day = from;
  for (let left = days; left > 0; left--) day = firstOpen(calendar, day + 1, field);
  for (let left = days; left < 0; left++) day = lastOpen(calendar, day - 1, field);
  return day;
}

/** Whether this stored time was resolved by a calendar, and by which one. */
export function calendarOf(stored: unknown): string | null {
  const { calendar } = (stored ?? {}) as Partial<BusinessTime>;
  return typeof calendar === "string" ? calendar : null;
}

/**
 * The instant by the current calendar and zone data. What was accepted once cannot be refused now: null, so that the
 * old instant stays, if the calendar is gone or no longer opens.
 */
export function resolveBusinessTime(stored: BusinessTime, calendars: NamedCalendars): Instant | null {
  try {
    const calendar = findCalendar(calendars, stored.calendar, "calendar");
    const { day, seconds } = resolveDay(calendar, stored, "calendar");
    const { gap, overlap } = stored;
    return resolveBent({ gap, overlap, zone: calendar.zone, local: localAt(day, seconds) }).at;
  } catch {
    return null;
  }
}

/** What `explainWhen` says about the day. */
export function explainDay(calendar: BusinessCalendar, time: BusinessTime, found: ResolvedDay): string {
  const { dayZero, day, isTodayOver } = found;
  const said: string[] = [];
  if (dayZero === null) said.push(`the next such time on a working day of ${time.calendar}`);
  else {
    const days = Math.abs(time.workingDays as number);
    const direction = (time.workingDays as number) < 0 ? "before" : "after";
    said.push(
      days === 0
        ? `${dayText(day)} by the calendar ${time.calendar}`
        : `${days} working day${days === 1 ? "" : "s"} ${direction} ${dayText(dayZero)} by the calendar ${time.calendar}`,
    );
    if (isTodayOver) said.push("today is closed or its cut-off has passed, so the next working day is day 0");
  }
  if (calendar.until !== null && dayText(day) > calendar.until)
    said.push(`its holidays are known until ${calendar.until}, so this may change`);
  return said.join("; ");
}
