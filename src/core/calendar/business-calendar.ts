import { CurfewError, refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import { checkZone } from "../timeout/wall-clock.ts";
import { type DayNumber, dayText, parseDay, weekdayOf } from "./calendar-date.ts";

/** `"09:00-17:00"`: from the first minute up to the second, by the clock of the calendar's zone. */
export type HoursText = string;

/** A day that differs from its weekday. Without `hours` it is closed; with them it is open then, also on a Sunday. */
export interface CalendarDay {
  /** `"2030-12-24"`. */
  readonly date: string;
  readonly hours?: HoursText;
  /** Shown by previews: `"Christmas Eve"`. */
  readonly name?: string;
}

/** Gives the special days of a span, both ends included. It is asked once, when the calendar is stored. */
export interface HolidayProvider {
  days(span: {
    readonly from: string;
    readonly to: string;
  }): readonly CalendarDay[] | Promise<readonly CalendarDay[]>;
}

const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
type Weekday = (typeof WEEKDAYS)[number];

export interface CalendarInput {
  /** An IANA name such as `"Europe/Berlin"`. */
  readonly zone: string;
  /** The hours of each weekday; a weekday that is left out is closed. */
  readonly week: Readonly<Partial<Record<Weekday, HoursText>>>;
  /** Holidays, half days and working Saturdays. */
  readonly days?: readonly CalendarDay[];
  /** The last day for which `days` is complete. Previews warn about instants after it. */
  readonly until?: string;
}

/** A business calendar as it is stored. */
export interface BusinessCalendar {
  readonly zone: string;
  readonly week: Readonly<Partial<Record<Weekday, HoursText>>>;
  /** By date. */
  readonly days: readonly CalendarDay[];
  readonly until: string | null;
}

/** Opening and closing of one day, in seconds after midnight. */
export interface Hours {
  readonly opens: number;
  readonly closes: number;
}

/** A stored calendar by its name. */
export interface NamedCalendars {
  find(name: string): BusinessCalendar | undefined;
}

const KEYS = keysOf<CalendarInput>({ zone: true, week: true, days: true, until: true });
const DAY_KEYS = keysOf<CalendarDay>({ date: true, hours: true, name: true });
const HOURS = /^([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|(24):(00))$/;
/** Fifty years with forty special days each. */
const MOST_DAYS = 2_000;
const LONGEST_NAME = 100;
/** How far the next working day is searched: ten years of days. */
export const LOOK_AHEAD = 3_653;

/** Checks a calendar. `from` is a day from which on it must open. */
export function parseCalendar(input: CalendarInput, from: DayNumber, field: string): BusinessCalendar {
  refuseUnknownKeys(input, field, KEYS);
  const { week, days = [], until } = input;
  const zone = checkZone(input.zone, `${field}.zone`);
  if (typeof week !== "object" || week === null)
    throw refuse("invalid_calendar", `${field}.week`, week, 'write { mon: "09:00-17:00", … }');
  refuseUnknownKeys(week, `${field}.week`, WEEKDAYS);
  for (const [weekday, hours] of Object.entries(week))
    if (hours !== undefined) parseOpening(hours, `${field}.week.${weekday}`);
  if (until !== undefined) parseDay(until, `${field}.until`);
  const calendar: BusinessCalendar = {
    zone,
    week: Object.fromEntries(WEEKDAYS.flatMap((name) => (week[name] ? [[name, week[name]]] : []))),
    days: parseDays(days, `${field}.days`),
    until: until ?? null,
  };
  firstOpen(calendar, from, field);
  return calendar;
}

function parseDays(days: readonly CalendarDay[], field: string): readonly CalendarDay[] {
  if (!Array.isArray(days) || days.length > MOST_DAYS) {
    const fix = `write a list of at most ${MOST_DAYS} days such as { date: "2030-12-25", name: "Christmas" }`;
    throw refuse("invalid_calendar", field, Array.isArray(days) ? days.length : days, fix);
  }
  const byDate = new Map<string, CalendarDay>();
  for (const [index, day] of days.entries()) {
    const at = `${field}[${index}]`;
    if (typeof day !== "object" || day === null)
      throw refuse("invalid_calendar", at, day, 'write { date: "2030-12-25" }');
    refuseUnknownKeys(day, at, DAY_KEYS);
    const { date, hours, name } = day;
    parseDay(date, `${at}.date`);
    if (hours !== undefined) parseOpening(hours, `${at}.hours`);
    if (name !== undefined && (typeof name !== "string" || name.length > LONGEST_NAME))
      throw refuse(
        "invalid_calendar",
        `${at}.name`,
        name,
        `use a text of at most ${LONGEST_NAME} characters`,
      );
    if (byDate.has(date))
      throw refuse("invalid_calendar", `${at}.date`, date, "name each day once: which of the two counts?");
    byDate.set(date, { date, ...(hours !== undefined && { hours }), ...(name !== undefined && { name }) });
  }
  return [...byDate.values()].sort((a, b) => (a.date < b.date ? -1 : 1));
}

function parseOpening(text: unknown, field: string): Hours {
  const [, ...parts] = typeof text === "string" ? (HOURS.exec(text) ?? []) : [];
  const [openHour, openMinute, closeHour = "24", closeMinute = "0"] = parts.map((part) => part);
  const opens = Number(openHour) * 3_600 + Number(openMinute) * 60;
  const closes = Number(closeHour) * 3_600 + Number(closeMinute) * 60;
  if (parts.length > 0 && opens < closes) return { opens, closes };
  const fix =
    'write the opening and the later closing of one day, such as "09:00-17:00"; "24:00" is midnight';
  throw refuse("invalid_calendar", field, text, fix);
}

interface Compiled {
  readonly week: readonly (Hours | null)[];
  readonly days: ReadonlyMap<DayNumber, { readonly hours: Hours | null }>;
}

/** A calendar is stored as texts. What is computed from them is kept as long as the calendar is. */
const compiled = new WeakMap<BusinessCalendar, Compiled>();

function compile(calendar: BusinessCalendar): Compiled {
  const known = compiled.get(calendar);
  if (known) return known;
  const hoursOf = (text: HoursText | undefined) => (text === undefined ? null : parseOpening(text, "hours"));
  const made: Compiled = {
    week: WEEKDAYS.map((name) => hoursOf(calendar.week[name])),
    days: new Map(
      calendar.days.map(({ date, hours }) => [parseDay(date, "date"), { hours: hoursOf(hours) }]),
    ),
  };
  compiled.set(calendar, made);
  return made;
}

/** The hours of a day; null if it is closed. */
export function hoursOn(calendar: BusinessCalendar, day: DayNumber): Hours | null {
  const { week, days } = compile(calendar);
  const special = days.get(day);
  return special ? special.hours : (week[weekdayOf(day)] ?? null);
}

/** The first working day on or after this one. */
export function firstOpen(calendar: BusinessCalendar, day: DayNumber, field: string): DayNumber {
  return openFrom(calendar, day, 1, field);
}

/** The last working day on or before this one. */
export function lastOpen(calendar: BusinessCalendar, day: DayNumber, field: string): DayNumber {
  return openFrom(calendar, day, -1, field);
}

/** The first working day on or after this one; null if the calendar does not open within ten years. */
export function nextOpen(calendar: BusinessCalendar, day: DayNumber, step: 1 | -1 = 1): DayNumber | null {
  for (let passed = 0, at = day; passed <= LOOK_AHEAD; passed++, at += step)
    if (hoursOn(calendar, at) !== null) return at;
  return null;
}

function openFrom(calendar: BusinessCalendar, day: DayNumber, step: 1 | -1, field: string): DayNumber {
  const found = nextOpen(calendar, day, step);
  if (found !== null) return found;
  const span = [dayText(day), dayText(day + step * LOOK_AHEAD)].sort().join(" and ");
  const message = `${field}: the calendar has no working day between ${span}; name the hours of its weekdays`;
  throw new CurfewError("never_opens", message, { field });
}

export function findCalendar(
  calendars: NamedCalendars | undefined,
  name: unknown,
  field: string,
): BusinessCalendar {
  const known = typeof name === "string" ? calendars?.find(name) : undefined;
  if (known) return known;
  const fix = calendars
    ? "store it with engine.calendars.put(), and wait up to 5 s if another process has just done so"
    : "calendars are records of an engine: use engine.timeouts or engine.calendars, or pass calendars to explainWhen";
  throw refuse("unknown_calendar", field, name, fix);
}
