import { Cron } from "croner";
import { fieldsOf } from "./cron-words.ts";

/**
 * The next instants of a cron in its zone, by the server's rules where it says no others: a time of day that a clock
 * change skips comes as much later, one that happens twice comes the first time; an expression that names every hour
 * counts real time.
 */

export interface CronInstant {
  readonly at: number;
  /** What the clocks of the zone are ahead of UTC by then, in milliseconds. */
  readonly offset: number;
  /** What a clock change does to it. */
  readonly change: "skipped" | "repeated" | null;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const EVERY_HOUR = /^(?:\*|\*\/1|0-23)$/;
const MOST_STEPS = 200;

const formats = new Map<string, Intl.DateTimeFormat>();

/** A formatter for the offset of a zone; null where this browser does not know the zone. */
function formatOf(zone: string): Intl.DateTimeFormat | null {
  const known = formats.get(zone);
  if (known) return known;
  try {
    const made = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, made);
    return made;
  } catch {
    return null;
  }
}

/** How far the clocks of a zone are ahead of UTC at an instant. */
export function offsetAt(zone: string, at: number): number | null {
  const format = formatOf(zone);
  if (!format) return null;
  const whole = Math.floor(at / 1_000) * 1_000;
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(whole)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}

/** The instants at which the clocks of a zone show a time: none in a gap, two where it is repeated. */
function instantsAt(zone: string, local: number): { readonly found: number[]; readonly before: number } {
  const before = offsetAt(zone, local - DAY) ?? 0;
  const after = offsetAt(zone, local + DAY) ?? 0;
  const found = [...new Set([local - before, local - after])]
    .filter((at) => offsetAt(zone, at) === local - at)
    .sort((a, b) => a - b);
  return { found, before };
}

/** The next instants after one; empty where the expression or the zone cannot be read here. */
export function nextInstants(expression: string, zone: string, from: number, count: number): CronInstant[] {
  const fields = fieldsOf(expression);
  const offset = offsetAt(zone, from);
  if (!fields || offset === null) return [];
  const { second, minute, hour, day, month, weekday } = fields;
  const pattern = patternOf([second, minute, hour, day, month, weekday].join(" "));
  if (!pattern) return [];
  const isEveryHour = EVERY_HOUR.test(hour);
  const all: CronInstant[] = [];
  // Two hours earlier: what happens twice, or is moved out of a gap, may be later than its own time of day.
  let local = from + offset - 2 * HOUR;
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const next = pattern.nextRun(new Date(local))?.getTime();
    if (next === undefined) break;
    local = next;
    all.push(...instantsOf(zone, local, isEveryHour).filter(({ at }) => at > from));
    // Two more than are asked for, because the second of two comes before what follows on the clock.
    if (all.length >= count + 2 * 60) break;
    if (all.length >= count && local - (all[count - 1] as CronInstant).at > 2 * DAY) break;
  }
  return all.sort((a, b) => a.at - b.at).slice(0, count);
}

function instantsOf(zone: string, local: number, isEveryHour: boolean): CronInstant[] {
  const { found, before } = instantsAt(zone, local);
  const made = (at: number, change: CronInstant["change"]) => ({
    at,
    offset: offsetAt(zone, at) ?? 0,
    change,
  });
  if (found.length === 0) return isEveryHour ? [] : [made(local - before, "skipped")];
  if (found.length === 1) return [made(found[0] as number, null)];
  return (isEveryHour ? found : found.slice(0, 1)).map((at) => made(at, "repeated"));
}

function patternOf(text: string): Cron | null {
  try {
    return new Cron(text, { utcOffset: 0, mode: "5-or-6-parts", paused: true });
  } catch {
    return null;
  }
}

const text = new Map<string, Intl.DateTimeFormat>();

/** An instant as the clocks of a zone show it: `Mon, 2 Nov, 09:00`. */
export function inZone(zone: string, at: number): string {
  let format = text.get(zone);
  if (!format) {
    const options = {
      weekday: "short",
      day: "numeric",
      month: "short",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    } as const;
    try {
      format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
    } catch {
      format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
    }
    text.set(zone, format);
  }
  return format.format(at).replace(/:00$/, "");
}

/** `UTC+1`, `UTC−3:30`. */
export function offsetText(offset: number): string {
  if (offset === 0) return "UTC";
  const minutes = Math.abs(Math.round(offset / 60_000));
  const rest = minutes % 60;
  return `UTC${offset < 0 ? "−" : "+"}${Math.floor(minutes / 60)}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}
