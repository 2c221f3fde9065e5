/** How numbers and times are written. Pure, so that the same is written the same everywhere. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A stretch of time as people say it: `840 ms`, `3.2 s`, `1 m 18 s`, `2 h 5 m`, `3 d 4 h`. */
export function durationText(span: number): string {
  const ms = Math.abs(span);
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${trimmed(ms / SECOND, 1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return two(ms, MINUTE, "m", SECOND, "s");
  if (ms < DAY) return two(ms, HOUR, "h", MINUTE, "m");
  return two(ms, DAY, "d", HOUR, "h");
}

/** The same for a duration of the server, which it writes in seconds: `PT90S`. */
export function isoText(duration: string): string {
  return durationText(Number(duration.slice(2, -1)) * SECOND);
}

function two(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const whole = Math.floor(ms / big);
  const rest = Math.floor((ms - whole * big) / small);
  return rest === 0 || whole >= 100 ? `${whole} ${bigName}` : `${whole} ${bigName} ${rest} ${smallName}`;
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.0+$/, "");
}

/** The age of something, in one unit: it is read at a glance, and the exact time is on hover. */
export function ageText(span: number): string {
  const ms = Math.max(0, span);
  if (ms < SECOND) return "now";
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** A limit as it is written in code: `2m`, `1h30m`, `500ms`. */
export function limitText(span: number | null | undefined): string {
  if (span === null || span === undefined) return "none";
  let rest = span;
  let text = "";
  for (const [unit, name] of [
    [DAY, "d"],
    [HOUR, "h"],
    [MINUTE, "m"],
    [SECOND, "s"],
    [1, "ms"],
  ] as const) {
    const count = Math.floor(rest / unit);
    if (count === 0) continue;
    text += `${count}${name}`;
    rest -= count * unit;
  }
  return text === "" ? "0s" : text;
}

/** Reads what `limitText` writes: `2m`, `1h30m`, `90 s`; undefined where it is no duration. */
export function readLimit(text: string): number | undefined {
  const trimmedText = text.trim().toLowerCase();
  if (!/^(?:\d+(?:\.\d+)?\s*(?:ms|s|m|h|d)\s*)+$/.test(trimmedText)) return undefined;
  const units: Record<string, number> = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY };
  let sum = 0;
  for (const [, count, unit] of trimmedText.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)/g))
    sum += Number(count) * (units[unit ?? "s"] ?? 0);
  return sum > 0 && Number.isFinite(sum) ? Math.round(sum) : undefined;
}

/** A countdown: `1:18`, `1:02:03`; beyond two days in words. */
export function countdownText(span: number): string {
  const seconds = Math.max(0, Math.ceil(span / SECOND));
  if (seconds >= 86_400) return durationText(seconds * SECOND);
  const pad = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor((seconds % 3_600) / 60);
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}

const grouped = new Intl.NumberFormat("en-US");

/** `8,797`; beyond a hundred thousand `1.2 M`. */
export function countText(count: number): string {
  if (count < 100_000) return grouped.format(Math.round(count));
  if (count < 1_000_000) return `${Math.round(count / 1_000)} k`;
  return `${trimmed(count / 1_000_000, 1)} M`;
}

export function rateText(perSecond: number): string {
  if (perSecond >= 100) return grouped.format(Math.round(perSecond));
  return perSecond >= 10 ? perSecond.toFixed(0) : trimmed(perSecond, perSecond < 1 ? 2 : 1);
}

export function percentText(share: number): string {
  const value = share * 100;
  return value >= 99.9 && value < 100 ? `${value.toFixed(2)} %` : `${trimmed(value, value < 10 ? 1 : 0)} %`;
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const shortClock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });

/** `16:08:39`, in the viewer's zone. */
export const clockText = (at: number): string => clock.format(at);
/** `16:08`. */
export const shortClockText = (at: number): string => shortClock.format(at);
/** `Mon, 2 Nov`. */
export const dayText = (at: number): string => day.format(at);

/** The time of day, with the day in front where it is another one. */
export function whenText(at: number, now: number): string {
  return day.format(at) === day.format(now) ? clockText(at) : `${dayText(at)}, ${shortClockText(at)}`;
}

/** What is shown on hover: the exact time here, and in UTC. */
export function exactText(at: number): string {
  const here = `${dayText(at)} ${clockText(at)}.${String(Math.floor(at % 1_000)).padStart(3, "0")}`;
  return `${here} ${zoneText(at)}\n${new Date(at).toISOString().replace("T", " ").replace("Z", " UTC")}`;
}

/** `UTC+1`, for the viewer's zone at an instant. */
export function zoneText(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const hours = Math.trunc(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}

/** The viewer's zone: `Europe/Berlin`. */
export const zoneOfViewer = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";

/** Its last part, as people say it: `Berlin`. */
export function zoneName(): string {
  const name = zoneOfViewer();
  return (name.split("/").at(-1) ?? name).replaceAll("_", " ");
}

/** The start and the end of an id: ids of one moment begin alike, and end differently. */
export const shortId = (id: string): string => (id.length <= 16 ? id : `${id.slice(0, 8)}…${id.slice(-6)}`);

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;
