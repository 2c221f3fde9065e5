import { Temporal } from "temporal-polyfill";
import { refuse, refuseRange, refuseType, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import type { Json } from "../schema.ts";
import { INSTANT_LIMIT, type Instant } from "../time.ts";

/** What to do with a local time that a clock change skips. `later` is the default, as in Temporal. */
export type GapPolicy = "later" | "earlier" | "reject";
/** Which one to take if a clock change makes a local time occur twice. */
export type OverlapPolicy = "earlier" | "later" | "reject";

/** A wall-clock time in a zone. A calendar day there has 23 to 25 hours, and `days` counts such days. */
export interface WallClockInput {
  /** `"17:00"` or `"17:00:30"`. Left out, with `days`: the time of day of now. */
  readonly at?: string;
  /** `"2030-01-31"`. Left out: today in the zone. */
  readonly date?: string;
  /** Calendar days after that date. Without `date` and `days`: the next time that it is `at` there. */
  readonly days?: number;
  /** An IANA name such as `"Europe/Berlin"`. */
  readonly zone: string;
  readonly gap?: GapPolicy;
  readonly overlap?: OverlapPolicy;
}

/** The stored form, from which the instant is computed now and again when newer zone data arrives (SEMANTICS 7.8). */
export interface WallClock {
  /** Without an offset: `"2030-01-31T17:00:00"`. */
  readonly local: string;
  readonly zone: string;
  readonly gap: GapPolicy;
  readonly overlap: OverlapPolicy;
}

/** How a local time became an instant. */
export type ClockRule = "exact" | "gap-later" | "gap-earlier" | "overlap-earlier" | "overlap-later";

export interface ResolvedClock {
  readonly at: Instant;
  /** The offset at that instant: `"+02:00"`. */
  readonly offset: string;
  /** What a clock on the wall shows then. In a gap it differs from the stored local time. */
  readonly local: string;
  readonly rule: ClockRule;
}

const KEYS = keysOf<WallClockInput>({
  at: true,
  date: true,
  days: true,
  zone: true,
  gap: true,
  overlap: true,
});
const TIME = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,3})?)?$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const POLICIES: readonly unknown[] = ["later", "earlier", "reject"];
/** As long as the longest duration. More is a typing error. */
const MOST_DAYS = 3_650;

/** Checks what a user wrote, and determines the local time that it means at `now`. */
export function parseWallClock(input: WallClockInput, now: Instant, field: string): WallClock {
  refuseUnknownKeys(input, field, KEYS);
  const zone = checkZone(input.zone, `${field}.zone`);
  const gap = checkPolicy(input.gap, "later", `${field}.gap`);
  const overlap = checkPolicy(input.overlap, "earlier", `${field}.overlap`);
  const days = checkDays(input.days, `${field}.days`);
  const here = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone).toPlainDateTime();
  const time = checkTime(input, here, field);
  const first = (checkDate(input.date, `${field}.date`) ?? here.toPlainDate()).toPlainDateTime(time);
  const fix = (local: Temporal.PlainDateTime): WallClock => ({ local: local.toString(), zone, gap, overlap });
  if (input.date !== undefined || days !== undefined) return fix(first.add({ days: days ?? 0 }));
  // The next such time is never now: a handler that asks for "17:00" at 17:00 sharp means tomorrow's.
  const isOver = resolveBent(fix(first)).at <= now;
  return fix(isOver ? first.add({ days: 1 }) : first);
}

export function checkZone(zone: unknown, field: string): string {
  const fix = 'use an IANA name such as "Europe/Berlin"';
  if (zone === undefined) throw refuseType("invalid_when", field, zone, `a local time needs a zone: ${fix}`);
  // Temporal accepts "+02:00" as a zone. But a fixed offset has no clock changes, so the user should write an
  // instant.
  if (typeof zone !== "string" || !/^[A-Za-z]/.test(zone)) throw refuse("unknown_zone", field, zone, fix);
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId;
  } catch (cause) {
    throw refuse("unknown_zone", field, zone, `${fix}, or install newer zone data`, { cause });
  }
}

export function checkPolicy<Policy extends string>(
  value: Policy | undefined,
  standard: Policy,
  field: string,
): Policy {
  if (value === undefined) return standard;
  if (POLICIES.includes(value)) return value;
  throw refuse("invalid_option", field, value, 'write "later", "earlier" or "reject"');
}

function checkDays(days: unknown, field: string): number | undefined {
  if (days === undefined) return undefined;
  const isWhole = typeof days === "number" && Number.isInteger(days);
  if (isWhole && days < 0) throw refuseRange("invalid_when", field, days, "count forward: 0 is today");
  if (isWhole && days <= MOST_DAYS) return days;
  throw refuse("invalid_when", field, days, `use whole days from 0 to ${MOST_DAYS}`);
}

function checkDate(date: unknown, field: string): Temporal.PlainDate | undefined {
  if (date === undefined) return undefined;
  try {
    if (typeof date === "string" && DATE.test(date)) return Temporal.PlainDate.from(date);
  } catch {
    // A date that looks right but does not exist is refused below.
  }
  throw refuse("invalid_when", field, date, 'write a day of the calendar such as "2030-01-31"');
}

function checkTime(
  { at, days }: WallClockInput,
  here: Temporal.PlainDateTime,
  field: string,
): Temporal.PlainTime {
  if (at === undefined && days !== undefined) return here.toPlainTime();
  if (typeof at === "string" && TIME.test(at)) return Temporal.PlainTime.from(at);
  const fix = 'write a time of day such as "17:00" or "17:00:30", and the day as date';
  throw refuse("invalid_when", `${field}.at`, at, fix);
}

/** The instant of a local time. The policy `reject` refuses a time that a clock change skips or repeats. */
export function resolveWallClock(clock: WallClock, field = "when"): ResolvedClock {
  const resolved = resolveBent(clock);
  const [kind] = resolved.rule.split("-");
  if ((kind === "gap" || kind === "overlap") && clock[kind] === "reject") {
    const happens = kind === "gap" ? "is skipped by a clock change" : "occurs twice";
    const fix = `it ${happens} in ${clock.zone}: choose ${kind} "later" or "earlier", or another time`;
    throw refuse("no_such_time", field, clock.local, fix);
  }
  if (resolved.at < 0 || resolved.at >= INSTANT_LIMIT) {
    throw refuse("invalid_when", field, clock.local, "use a time between the years 1970 and 3084");
  }
  return resolved;
}

/**
 * The instant by the current zone data, which may be newer than the stored time. What was accepted once cannot be
 * refused now: if a new clock change affects a time with the policy `reject`, the default applies.
 */
export function resolveAgain(stored: Json): Instant | null {
  const clock = stored as Partial<WallClock> | null;
  if (typeof clock?.local !== "string" || typeof clock.zone !== "string") return null;
  try {
    return resolveBent({ gap: "later", overlap: "earlier", ...clock } as WallClock).at;
  } catch {
    // A zone that was removed from the data keeps its instant.
    return null;
  }
}

/** Resolves with the defaults instead of `reject`. */
export function resolveBent({ local, zone, gap, overlap }: WallClock): ResolvedClock {
  const plain = Temporal.PlainDateTime.from(local);
  const early = plain.toZonedDateTime(zone, { disambiguation: "earlier" });
  const late = plain.toZonedDateTime(zone, { disambiguation: "later" });
  if (early.epochMilliseconds === late.epochMilliseconds) return resolved(early, "exact");
  const isOverlap = early.toPlainDateTime().equals(plain);
  if (isOverlap) {
    return overlap === "later" ? resolved(late, "overlap-later") : resolved(early, "overlap-earlier");
  }
  return gap === "earlier" ? resolved(early, "gap-earlier") : resolved(late, "gap-later");
}

function resolved(zoned: Temporal.ZonedDateTime, rule: ClockRule): ResolvedClock {
  return {
    at: zoned.epochMilliseconds,
    offset: zoned.offset,
    local: zoned.toPlainDateTime().toString(),
    rule,
  };
}
