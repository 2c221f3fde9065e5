import type { Calendar, CalendarDay, Weekday } from "../../../ojs/replies/settings-replies.ts";

export const WEEK: readonly Weekday[] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

export const DAY_NAMES: Readonly<Record<Weekday, string>> = {
  mon: "Monday",
  tue: "Tuesday",
  wed: "Wednesday",
  thu: "Thursday",
  fri: "Friday",
  sat: "Saturday",
  sun: "Sunday",
};

const short = (day: Weekday) => DAY_NAMES[day].slice(0, 2);

/** The week in a line: `Mo to Th 09:00-17:00, Fr 09:00-15:00`. Days that are left out are closed. */
export function weekWords({ week }: Pick<Calendar, "week">): string {
  const runs: { from: Weekday; to: Weekday; hours: string }[] = [];
  for (const [index, day] of WEEK.entries()) {
    const hours = week[day];
    if (hours === undefined) continue;
    const last = runs.at(-1);
    if (last && last.hours === hours && WEEK.indexOf(last.to) === index - 1) last.to = day;
    else runs.push({ from: day, to: day, hours });
  }
  if (runs.length === 0) return "closed on all days of the week";
  return runs
    .map(({ from, to, hours }) => `${short(from)}${from === to ? "" : ` to ${short(to)}`} ${hours}`)
    .join(", ");
}

/** Hours as they fit into a day of a month: `9–17`, `9:30–12`. */
export const openText = (hours: string): string =>
  hours
    .split("-")
    .map((time) => time.replace(/^0/, "").replace(/:00$/, ""))
    .join("–");

/** A date without a time zone, at noon in UTC so that no zone moves it to another day. */
const noon = (date: string): Date => new Date(`${date}T12:00:00Z`);

export interface CalendarCell {
  readonly date: string;
  readonly number: number;
  readonly isInMonth: boolean;
  readonly hours: string | null;
  readonly name: string | null;
  /** Another rule than that of its weekday. */
  readonly isSpecial: boolean;
}

/** The days of a month (`2026-12`) with the weeks around them, from Monday on; null where it is no month. */
export function monthOf(calendar: Calendar, month: string): CalendarCell[] | null {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(month)) return null;
  const first = noon(`${month}-01`);
  if (Number.isNaN(first.getTime())) return null;
  const special = new Map(calendar.days.map((day) => [day.date, day]));
  const lead = (first.getUTCDay() + 6) % 7;
  const length = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  return Array.from({ length: Math.ceil((lead + length) / 7) * 7 }, (_, index) => {
    const day = new Date(first.getTime() + (index - lead) * 86_400_000);
    return cellOf(calendar, day, special, month);
  });
}

function cellOf(
  { week }: Calendar,
  day: Date,
  special: ReadonlyMap<string, CalendarDay>,
  month: string,
): CalendarCell {
  const date = day.toISOString().slice(0, 10);
  const own = special.get(date);
  const weekday = WEEK[(day.getUTCDay() + 6) % 7] as Weekday;
  return {
    date,
    number: day.getUTCDate(),
    isInMonth: date.startsWith(month),
    hours: (own ? own.hours : week[weekday]) ?? null,
    name: own?.name ?? null,
    isSpecial: own !== undefined,
  };
}

/** A month before or after: `2026-12` and 1 is `2027-01`. */
export function monthBy(month: string, step: number): string {
  const day = noon(`${month}-15`);
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + step, 15)).toISOString().slice(0, 7);
}

const monthFormat = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const dayFormat = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});
export const monthName = (month: string) => monthFormat.format(noon(`${month}-15`));
export const dateName = (date: string) => dayFormat.format(noon(date));

/** Days on which the list of holidays ends soon: until then a time by this calendar may be wrong. */
export function daysLeft({ until }: Pick<Calendar, "until">, now: number): number | null {
  if (!until) return null;
  return Math.floor((noon(until).getTime() - now) / 86_400_000);
}

/** The special days from a date on, the next first. */
export const upcoming = ({ days }: Calendar, from: string): CalendarDay[] =>
  days.filter(({ date }) => date >= from).sort((a, b) => (a.date < b.date ? -1 : 1));

const LINE = /^(\d{4}-\d{2}-\d{2})(?:\s+(\d{2}:\d{2}-\d{2}:\d{2}|closed))?(?:\s+(.*))?$/;

/** Special days as lines: `2026-12-24 09:00-12:00 Christmas Eve`; without hours the day is closed. */
export function daysText(days: readonly CalendarDay[]): string {
  return days
    .map(({ date, hours, name }) => [date, hours ?? "closed", name ?? ""].join(" ").trim())
    .join("\n");
}

export function readDays(text: string): { readonly days: CalendarDay[]; readonly error?: string } {
  const days: CalendarDay[] = [];
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line === "") continue;
    const [, date, hours, name] = LINE.exec(line) ?? [];
    if (date === undefined) return { days, error: `"${line}" has no date such as 2026-12-24 in front.` };
    const isOpen = hours !== undefined && hours !== "closed";
    days.push({ date, ...(isOpen && { hours }), ...(name && { name }) });
  }
  return { days };
}
