import { type Instant, LONGEST_DURATION, parseInstant } from "../core/time.ts";

const ISO_DURATION =
  /^P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const ISO_UNITS = [604_800_000, 86_400_000, 3_600_000, 60_000, 1_000];

/** Milliseconds of an ISO 8601 duration such as `PT1M30S`; undefined where the text is none that can be kept. */
export function readIsoDuration(text: string): number | undefined {
  const match = text.length <= 64 ? ISO_DURATION.exec(text) : null;
  if (!match || text.endsWith("T") || text === "P") return undefined;
  const exact = ISO_UNITS.reduce((sum, unit, index) => sum + Number(match[index + 1] ?? 0) * unit, 0);
  const whole = Math.round(exact);
  return whole <= LONGEST_DURATION ? whole : undefined;
}

/** An ISO 8601 duration in seconds. */
export function isoDuration(milliseconds: number): string {
  return `PT${milliseconds / 1_000}S`;
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of an ISO 8601 duration, or of one as people write it, such as `30m` or `7d`. */
export function durationOf(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) return readIsoDuration(text) || undefined;
  const ms = Number(count) * (UNITS[unit] as number);
  return ms > 0 && ms <= LONGEST_DURATION ? ms : undefined;
}

/** An instant on the wire: RFC 3339 with a zone, or `+` and an ISO duration from now. */
export function readInstant(text: string, now: Instant, field: string): Instant {
  if (text.startsWith("+")) {
    const delay = readIsoDuration(text.slice(1));
    if (delay !== undefined) return now + delay;
  }
  return parseInstant(text, field);
}

export function isInstantText(text: string): boolean {
  if (text.startsWith("+")) return readIsoDuration(text.slice(1)) !== undefined;
  try {
    parseInstant(text, "");
    return true;
  } catch {
    return false;
  }
}
