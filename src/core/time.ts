import { refuse } from "./errors.ts";

/** Whole milliseconds since 1970-01-01T00:00Z by the store's clock, never the machine's. */
export type Instant = number;

type DurationUnit = "ms" | "s" | "m" | "h" | "d";

/** `"250ms"`, `"30s"`, `"5m"`, `"2h"`, `"7d"`. A bare number does not compile, because it has no unit. */
export type DurationText = `${number}${DurationUnit}`;

/** Anything shaped like a `Temporal.Duration` without calendar units. */
export interface DurationFields {
  readonly weeks?: number;
  readonly days?: number;
  readonly hours?: number;
  readonly minutes?: number;
  readonly seconds?: number;
  readonly milliseconds?: number;
}

export type Duration = DurationText | DurationFields;

const UNITS: Readonly<Record<DurationUnit, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const FIELDS: Readonly<Record<keyof DurationFields, number>> = {
  weeks: 7 * UNITS.d,
  days: UNITS.d,
  hours: UNITS.h,
  minutes: UNITS.m,
  seconds: UNITS.s,
  milliseconds: 1,
};

/**
 * Fields of a `Temporal.Duration` that a deadline cannot use: their length depends on the calendar or is below 1 ms.
 */
const UNUSABLE_FIELDS = ["years", "months", "microseconds", "nanoseconds"] as const;

const FIELD_UNITS = Object.entries(FIELDS);
const KNOWN_FIELDS = new Set<string>([...Object.keys(FIELDS), ...UNUSABLE_FIELDS]);

/** Ten years. Longer limits are typing errors more often than intended. */
export const LONGEST_DURATION = 3_650 * UNITS.d;

/** The first instant that does not fit into a rank (see `rankOf`), in the year 3084. */
export const INSTANT_LIMIT = 2 ** 45;

/** The exact milliseconds of a duration; undefined if the value is not one. */
function readDuration(value: unknown): number | undefined {
  if (typeof value === "string") {
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value);
    return match ? Number(match[1]) * UNITS[match[2] as DurationUnit] : undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const fields = value as Record<string, unknown>;
  if (UNUSABLE_FIELDS.some((name) => fields[name] !== undefined && fields[name] !== 0)) return undefined;
  if (Object.keys(fields).some((name) => !KNOWN_FIELDS.has(name))) return undefined;
  let total = 0;
  let named = false;
  for (const [name, unit] of FIELD_UNITS) {
    const amount = fields[name];
    if (amount === undefined) continue;
    if (typeof amount !== "number" || !Number.isFinite(amount)) return undefined;
    named = true;
    total += amount * unit;
  }
  return named ? total : undefined;
}

const EXAMPLES = 'write "250ms", "30s", "5m", "2h" or "7d"';

/**
 * Parses a duration into whole milliseconds, or refuses it. Zero is allowed only if the caller says so: for most
 * limits it would mean "never", which nobody wants silently.
 */
export function parseDuration(value: unknown, field: string, allow: { zero?: boolean } = {}): number {
  const exact = readDuration(value);
  if (exact === undefined) throw refuse("invalid_duration", field, value, EXAMPLES);
  const whole = Math.round(exact);
  if (Math.abs(whole - exact) > 1e-6) {
    throw refuse("invalid_duration", field, value, "use whole milliseconds");
  }
  if (whole < 0 || (whole === 0 && !allow.zero)) {
    throw refuse("invalid_duration", field, value, `use more than 0, such as "30s" or "5m"`);
  }
  if (whole > LONGEST_DURATION) {
    throw refuse("invalid_duration", field, value, "use at most 10 years (3650d)");
  }
  return whole;
}

/** Whether the value is a duration below zero. Callers that count forward from now refuse it with a RangeError. */
export function isNegativeDuration(value: unknown): boolean {
  if (typeof value === "string") return value.startsWith("-") && (readDuration(value.slice(1)) ?? 0) > 0;
  return (readDuration(value) ?? 0) < 0;
}

/** Whether the text is meant as a duration, so that a message can mention durations and not dates. */
export function isDurationText(value: string): boolean {
  return readDuration(value.startsWith("-") ? value.slice(1) : value) !== undefined;
}

/**
 * The largest unit that is exact: `90s`, `5m`, `2h`. One minute is written `60s`, as in the contract's example of a
 * stall. Every other count of one keeps its unit.
 */
export function formatDuration(milliseconds: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    const count = milliseconds / UNITS[unit];
    if (count >= 1 && Number.isInteger(count) && !(unit === "m" && count === 1)) return `${count}${unit}`;
  }
  return `${milliseconds}ms`;
}

/** An absolute time as a user may write it. A local time without an offset is refused, since it names no instant. */
export type InstantInput = Date | { readonly epochMilliseconds: number } | string;

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

export function parseInstant(value: unknown, field: string): Instant {
  const instant = readInstant(value);
  if (instant === undefined || !Number.isFinite(instant)) {
    throw refuse(
      "invalid_instant",
      field,
      value,
      'write a Date, a Temporal.Instant or RFC 3339 with an offset such as "2030-01-31T12:00:00Z"',
    );
  }
  if (instant < 0 || instant >= INSTANT_LIMIT) {
    throw refuse("invalid_instant", field, value, "use an instant between the years 1970 and 3084");
  }
  return Math.floor(instant);
}

/** Refuses what is no instant. A store keeps and compares whole milliseconds, so a fraction is never rounded silently. */
export function checkInstant(value: Instant, field: string): void {
  if (Number.isInteger(value) && value >= 0 && value < INSTANT_LIMIT) return;
  const fix = "use whole milliseconds since 1970, before the year 3084";
  throw refuse("invalid_instant", field, value, fix);
}

function readInstant(value: unknown): number | undefined {
  if (value instanceof Date) return value.getTime();
  if (typeof value === "string") {
    const match = RFC_3339.exec(value);
    if (!match) return undefined;
    const [year, month, day] = match.slice(1, 4).map(Number) as [number, number, number];
    // Date.parse reads the 31st of a shorter month as a day of the next one.
    const isDay = new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
    return isDay ? Date.parse(value) : undefined;
  }
  if (typeof value === "object" && value !== null && "epochMilliseconds" in value) {
    return typeof value.epochMilliseconds === "number" ? value.epochMilliseconds : undefined;
  }
  return undefined;
}

/** The earlier of two instants. Null means "never". */
export function earlier(a: Instant | null, b: Instant | null): Instant | null {
  if (a === null) return b;
  if (b === null) return a;
  return a < b ? a : b;
}
