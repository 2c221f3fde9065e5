import { CRON_SHORTHANDS } from "../../../ojs/cron-shorthands.ts";

/** Cron expressions as people say them. What is too strange for a sentence is said field by field. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
const ORDINALS = ["", "first", "second", "third", "fourth", "fifth"] as const;

export interface CronFields {
  readonly second: string;
  readonly minute: string;
  readonly hour: string;
  readonly day: string;
  readonly month: string;
  readonly weekday: string;
}

/** The six fields of an expression; null where it has none. */
export function fieldsOf(expression: string): CronFields | null {
  const text = CRON_SHORTHANDS[expression.trim().toLowerCase()] ?? expression.trim();
  const parts = text.split(/\s+/);
  if (parts.length === 5) parts.unshift("0");
  if (parts.length !== 6) return null;
  const [second, minute, hour, day, month, weekday] = parts as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const any = (field: string) => (field === "?" ? "*" : field);
  return { second, minute, hour, day: any(day), month: any(month), weekday: any(weekday) };
}

export function cronWords(expression: string): string {
  const period = /^@every (\d+)(s|m|h|d)$/.exec(expression.trim());
  if (period) return periodWords(Number(period[1]), period[2] as keyof typeof UNITS);
  const fields = fieldsOf(expression);
  if (!fields) return expression;
  const { second, minute, hour, day, month, weekday } = fields;
  const when = timeWords(second, minute, hour);
  const days = dayWords(day, month, weekday);
  return `${when}${days === "" ? "" : ` ${days}`}`;
}

const CLOSED_WORDS = {
  skip: "on working days",
  next: "or the working day after",
  previous: "or the working day before",
} as const;

/** What a business calendar adds to the words of an expression; nothing without one. */
export function workingDayWords(cron: {
  readonly calendar?: string;
  readonly closed_days?: keyof typeof CLOSED_WORDS;
}): string {
  if (cron.calendar === undefined) return "";
  return `, ${CLOSED_WORDS[cron.closed_days ?? "skip"]} of ${cron.calendar}`;
}

const UNITS = { s: "second", m: "minute", h: "hour", d: "day" } as const;

function periodWords(count: number, unit: keyof typeof UNITS): string {
  return count === 1 ? `every ${UNITS[unit]}` : `every ${count} ${UNITS[unit]}s`;
}

const isNumber = (field: string) => /^\d+$/.test(field);
const stepOf = (field: string) => /^(?:\*|0)\/(\d+)$/.exec(field)?.[1];
const pad = (text: string | number) => String(text).padStart(2, "0");

function list(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function every(count: string, unit: string): string {
  return count === "1" ? `every ${unit}` : `every ${count} ${unit}s`;
}

function timeWords(second: string, minute: string, hour: string): string {
  const exact = exactTimes(second, minute, hour);
  if (exact) return `at ${list(exact)}`;
  const step = stepOf(second);
  const seconds =
    second === "0"
      ? ""
      : second === "*"
        ? "every second"
        : step
          ? every(step, "second")
          : `at second ${ranges(second, String)}`;
  const minutes = minuteWords(minute, hour, seconds !== "");
  return [seconds, minutes].filter((text) => text !== "").join(", ");
}

const MOST_TIMES = 6;

/** `09:00 and 17:30`, where hours and minutes are plain numbers and few. */
function exactTimes(second: string, minute: string, hour: string): string[] | null {
  const isList = (field: string) => /^\d+(?:,\d+)*$/.test(field);
  if (!isNumber(second) || !isList(minute) || !isList(hour)) return null;
  const times = hour
    .split(",")
    .flatMap((h) =>
      minute.split(",").map((m) => `${pad(h)}:${pad(m)}${second === "0" ? "" : `:${pad(second)}`}`),
    );
  return times.length > MOST_TIMES ? null : times.sort();
}

function minuteWords(minute: string, hour: string, isWithin: boolean): string {
  const hours = hourWords(hour);
  const step = stepOf(minute);
  if (minute === "*") return isWithin ? hours : ["every minute", hours].filter(Boolean).join(" ");
  if (step) return [every(step, "minute"), hours].filter(Boolean).join(" ");
  const inEveryHour = hour === "*" ? "of every hour" : (everyHours(hour) ?? hours);
  if (minute === "0" && hour === "*") return "every hour";
  if (minute === "0" && everyHours(hour)) return everyHours(hour) as string;
  return `at minute ${ranges(minute, String)} ${inEveryHour}`.trim();
}

function everyHours(hour: string): string | undefined {
  const step = stepOf(hour);
  return step && every(step, "hour");
}

function hourWords(hour: string): string {
  if (hour === "*") return "";
  const span = /^(\d+)-(\d+)$/.exec(hour);
  if (span) return `from ${pad(span[1] as string)}:00 to ${pad(span[2] as string)}:59`;
  if (isNumber(hour)) return `from ${pad(hour)}:00 to ${pad(hour)}:59`;
  return everyHours(hour) ? `in ${everyHours(hour)}` : `in hours ${ranges(hour, String)}`;
}

/** Numbers, ranges and steps of a field, with their names. */
function ranges(field: string, name: (value: string) => string): string {
  const words = field.split(",").map((part) => {
    const step = /^(.+)\/(\d+)$/.exec(part);
    if (step) {
      const within = step[1] === "*" ? "" : ` of ${ranges(step[1] as string, name)}`;
      return `every ${step[2]}${within}`;
    }
    const span = /^(\w+)-(\w+)$/.exec(part);
    return span ? `${name(span[1] as string)} to ${name(span[2] as string)}` : name(part);
  });
  return list(words);
}

function named(names: readonly string[], first: number) {
  return (value: string): string => {
    const short = names.find((name) => name.slice(0, 3).toLowerCase() === value.toLowerCase());
    return short ?? names[(Number(value) - first) % names.length] ?? value;
  };
}
const weekdayName = (value: string) => named(DAYS, 0)(value === "7" ? "0" : value);
const monthName = named(MONTHS, 1);

function weekdayWords(weekday: string): string {
  if (weekday === "*") return "";
  const nth = /^(\w+)#(\d)$/.exec(weekday);
  if (nth) return `on the ${ORDINALS[Number(nth[2])] ?? `${nth[2]}th`} ${weekdayName(nth[1] as string)}`;
  const last = /^(\w+)L$|^(\w+)#L$/i.exec(weekday);
  if (last) return `on the last ${weekdayName((last[1] ?? last[2]) as string)}`;
  return isNumber(weekday) || /^[a-z]{3}$/i.test(weekday)
    ? `every ${weekdayName(weekday)}`
    : `${/^[\w,]+$/.test(weekday) ? "on" : "from"} ${ranges(weekday, weekdayName)}`;
}

function monthDayWords(day: string): string {
  if (day === "*") return "";
  if (day === "L") return "on the last day";
  if (day === "LW") return "on the last weekday";
  const near = /^(\d+)W$/.exec(day);
  if (near) return `on the weekday nearest to day ${near[1]}`;
  const step = stepOf(day);
  if (step) return `every ${step} days`;
  return `on day ${ranges(day, (value) => (value === "L" ? "the last" : value))}`;
}

function dayWords(day: string, month: string, weekday: string): string {
  const monthDay = monthDayWords(day);
  const weekDay = weekdayWords(weekday);
  const months =
    month === "*"
      ? ""
      : stepOf(month)
        ? `in every ${stepOf(month)} months`
        : `in ${ranges(month, monthName)}`;
  if (monthDay === "" && weekDay === "") return months;
  // With both, a day that fits either of them is meant.
  const days = monthDay && weekDay ? `${monthDay} and ${weekDay}` : monthDay || weekDay;
  const isOfMonth = monthDay !== "" || /#|L/i.test(weekday);
  return `${days}${months ? ` ${months}` : isOfMonth ? " of each month" : ""}`;
}
