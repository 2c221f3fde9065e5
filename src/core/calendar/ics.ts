import { refuse, refuseUnknownKeys } from "../errors.ts";
import type { CalendarDay, HolidayProvider } from "./business-calendar.ts";
import { type DayNumber, dayText, parseDay, weekdayOf } from "./calendar-date.ts";

export interface IcsOptions {
  /** What to do with events that have a time of day. Default `"refuse"`: whether they close the day is yours to say. */
  readonly timed?: "refuse" | "ignore";
}

const MOST_BYTES = 1_000_000;
const MOST_EVENTS = 5_000;
/** The days and years of all events that are looked at. Fifty years with forty holidays each are 4,000. */
const MOST_STEPS = 100_000;
/** A yearly event of a hundred years, each of them left out. */
const MOST_EXCEPTIONS = 100;
/** An event that spans more days is no holiday. */
const MOST_SPAN = 100;
const WEEKDAYS = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];
const RULE_FIX =
  "yearly rules by day of the month, or by weekday as in BYDAY=-1TH, are read; list other days one by one";

interface IcsEvent {
  readonly name: string;
  readonly first: DayNumber;
  readonly length: number;
  readonly rule: YearlyRule | null;
  readonly without: ReadonlySet<DayNumber>;
}

interface YearlyRule {
  readonly interval: number;
  readonly count: number;
  readonly until: DayNumber;
  readonly month: number;
  /** A day of the month, or the n-th weekday of it; n below 0 counts from its end. */
  readonly on: { readonly dayOfMonth: number } | { readonly weekday: number; readonly nth: number };
}

/** The all-day events of an iCalendar text (RFC 5545), each of them a closed day. */
export function icsHolidays(text: string, options: IcsOptions = {}): HolidayProvider {
  refuseUnknownKeys(options, "options", ["timed"]);
  const { timed = "refuse" } = options;
  if (timed !== "refuse" && timed !== "ignore")
    throw refuse("invalid_option", "options.timed", timed, 'write "refuse" or "ignore"');
  if (typeof text !== "string" || text.length > MOST_BYTES)
    throw refuse(
      "invalid_calendar",
      "ics",
      typeof text === "string" ? text.length : text,
      `pass a text of at most ${MOST_BYTES} characters`,
    );
  const events = readEvents(text, timed);
  return {
    days({ from, to }) {
      const [first, last] = [parseDay(from, "from"), parseDay(to, "to")];
      const days = new Map<DayNumber, CalendarDay>();
      const budget = new Budget();
      for (const event of events)
        for (const day of daysOf(event, first, last, budget)) {
          // Two names of one closed day are no contradiction.
          if (!days.has(day)) days.set(day, { date: dayText(day), ...(event.name && { name: event.name }) });
        }
      return [...days.values()];
    },
  };
}

interface Line {
  readonly name: string;
  readonly params: string;
  readonly value: string;
}

function readEvents(text: string, timed: "refuse" | "ignore"): IcsEvent[] {
  // A line that begins with a space continues the one before.
  const lines = text.replace(/\r?\n[ \t]/g, "").split(/\r?\n/);
  if (!lines.some((line) => line.trim().toUpperCase() === "BEGIN:VCALENDAR"))
    throw refuse(
      "invalid_calendar",
      "ics",
      text.slice(0, 40),
      "pass the text of an iCalendar file (BEGIN:VCALENDAR)",
    );
  const events: IcsEvent[] = [];
  let open: Line[] | null = null;
  for (const line of lines) {
    const [, name = "", params = "", value = ""] =
      /^([A-Za-z-]+)((?:;[^:"]*(?:"[^"]*"[^:"]*)*)?):(.*)$/.exec(line) ?? [];
    const word = `${name}:${value}`.trim().toUpperCase();
    if (word === "BEGIN:VEVENT") open = [];
    else if (word === "END:VEVENT" && open) {
      const event = readEvent(open, timed);
      if (event) events.push(event);
      open = null;
    } else open?.push({ name: name.toUpperCase(), params: params.toUpperCase(), value: value.trim() });
    if (events.length > MOST_EVENTS)
      throw refuse("invalid_calendar", "ics", events.length, `use a file with at most ${MOST_EVENTS} events`);
  }
  if (open)
    throw refuse("invalid_calendar", "ics", "END:VEVENT", "the last event does not end: the file is cut off");
  return events;
}

function readEvent(lines: readonly Line[], timed: "refuse" | "ignore"): IcsEvent | null {
  const one = (name: string) => lines.find((line) => line.name === name);
  const name = unescaped(one("SUMMARY")?.value ?? "").slice(0, 100);
  if (one("STATUS")?.value.toUpperCase() === "CANCELLED") return null;
  const field = `ics event ${JSON.stringify(name)}`;
  const start = one("DTSTART");
  if (!start) throw refuse("invalid_calendar", `${field}.DTSTART`, undefined, "give each event a first day");
  if (start.value.includes("T")) {
    if (timed === "ignore") return null;
    const fix =
      'it has a time of day: write its hours as a day of the calendar, and pass { timed: "ignore" }';
    throw refuse("invalid_calendar", `${field}.DTSTART`, start.value, fix);
  }
  const first = icsDay(start.value, `${field}.DTSTART`);
  const length = lengthOf(one, first, field);
  if (one("RDATE")) throw refuse("invalid_calendar", `${field}.RDATE`, one("RDATE")?.value, RULE_FIX);
  const rule = one("RRULE");
  const without = lines.filter((line) => line.name === "EXDATE").flatMap(({ value }) => value.split(","));
  if (without.length > MOST_EXCEPTIONS) {
    const fix = `an event may leave out at most ${MOST_EXCEPTIONS} days`;
    throw refuse("invalid_calendar", `${field}.EXDATE`, without.length, fix);
  }
  return {
    name,
    first,
    length,
    rule: rule ? readRule(rule.value, first, field) : null,
    without: new Set(without.map((day) => icsDay(day.slice(0, 8), `${field}.EXDATE`))),
  };
}

function lengthOf(one: (name: string) => Line | undefined, first: DayNumber, field: string): number {
  const end = one("DTEND");
  const [, weeks, days] = /^P(?:(\d+)W|(\d+)D)$/.exec(one("DURATION")?.value ?? "P1D") ?? [];
  const length = end
    ? icsDay(end.value.slice(0, 8), `${field}.DTEND`) - first
    : weeks === undefined
      ? Number(days)
      : Number(weeks) * 7;
  // Some programs write the same day as start and end of a one-day event.
  if (length >= 0 && length <= MOST_SPAN) return Math.max(1, length);
  throw refuse(
    "invalid_calendar",
    `${field}.DTEND`,
    end?.value ?? one("DURATION")?.value,
    `an event may span 1 to ${MOST_SPAN} days`,
  );
}

function icsDay(text: string, field: string): DayNumber {
  return parseDay(text.replace(/^(\d{4})(\d{2})(\d{2})$/, "$1-$2-$3"), field);
}

function readRule(text: string, first: DayNumber, field: string): YearlyRule {
  const parts = new Map(
    text
      .toUpperCase()
      .split(";")
      .map((part) => part.split("=", 2) as [string, string]),
  );
  const refused = () => refuse("invalid_calendar", `${field}.RRULE`, text, RULE_FIX);
  const known = ["FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "WKST"];
  if (parts.get("FREQ") !== "YEARLY" || [...parts.keys()].some((key) => !known.includes(key)))
    throw refused();
  const number = (key: string, standard: number, most: number) => {
    const value = Number(parts.get(key) ?? standard);
    if (!Number.isInteger(value) || value < 1 || value > most) throw refused();
    return value;
  };
  const began = new Date(first * 86_400_000);
  const until = parts.get("UNTIL");
  const byDay = parts.get("BYDAY");
  const [, nth, weekday] =
    byDay === undefined ? [] : (/^([+-]?[1-5])(SU|MO|TU|WE|TH|FR|SA)$/.exec(byDay) ?? []);
  if (byDay !== undefined && (nth === undefined || !parts.has("BYMONTH") || parts.has("BYMONTHDAY")))
    throw refused();
  return {
    interval: number("INTERVAL", 1, 100),
    count: parts.has("COUNT") ? number("COUNT", 1, 10_000) : Number.POSITIVE_INFINITY,
    until: until === undefined ? Number.POSITIVE_INFINITY : icsDay(until.slice(0, 8), `${field}.RRULE`),
    month: number("BYMONTH", began.getUTCMonth() + 1, 12),
    on:
      nth === undefined
        ? { dayOfMonth: number("BYMONTHDAY", began.getUTCDate(), 31) }
        : { nth: Number(nth), weekday: WEEKDAYS.indexOf(weekday as string) },
  };
}

/** Bounds the work on one calendar: a few thousand events may each span a hundred days in fifty years. */
class Budget {
  #left = MOST_STEPS;

  spend(): void {
    this.#left -= 1;
    if (this.#left >= 0) return;
    const fix =
      "its events have too many days and years: leave out events that are over, or read fewer years";
    throw refuse("invalid_calendar", "ics", MOST_STEPS, fix);
  }
}

/** The days of an event within a span. */
function daysOf(event: IcsEvent, from: DayNumber, to: DayNumber, budget: Budget): DayNumber[] {
  const days: DayNumber[] = [];
  for (const first of startsOf(event, to, budget)) {
    if (event.without.has(first)) continue;
    for (let day = Math.max(first, from); day < first + event.length && day <= to; day++) {
      budget.spend();
      days.push(day);
    }
  }
  return days;
}

function startsOf({ first, rule }: IcsEvent, to: DayNumber, budget: Budget): DayNumber[] {
  if (!rule) return first <= to ? [first] : [];
  const starts: DayNumber[] = [];
  const last = Math.min(to, rule.until);
  const firstYear = new Date(first * 86_400_000).getUTCFullYear();
  for (let year = firstYear; starts.length < rule.count; year += rule.interval) {
    if (Date.UTC(year, 0, 1) / 86_400_000 > last) return starts;
    budget.spend();
    const day = dayOfRule(rule, year);
    if (day !== null && day >= first && day <= last) starts.push(day);
  }
  return starts;
}

function dayOfRule({ month, on }: YearlyRule, year: number): DayNumber | null {
  const begin = Date.UTC(year, month - 1, 1) / 86_400_000;
  const length = Date.UTC(year, month, 1) / 86_400_000 - begin;
  // 29 February exists in leap years only, and then the event does.
  if ("dayOfMonth" in on) return on.dayOfMonth <= length ? begin + on.dayOfMonth - 1 : null;
  const { nth, weekday } = on;
  const edge = nth > 0 ? begin : begin + length - 1;
  const distance = nth > 0 ? (weekday - weekdayOf(edge) + 7) % 7 : -((weekdayOf(edge) - weekday + 7) % 7);
  const day = edge + distance + (nth > 0 ? nth - 1 : nth + 1) * 7;
  return day >= begin && day < begin + length ? day : null;
}

function unescaped(text: string): string {
  return text.replace(/\\([\\;,nN])/g, (_all, sign: string) => (sign.toLowerCase() === "n" ? " " : sign));
}
