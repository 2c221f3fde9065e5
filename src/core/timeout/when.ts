import { findCalendar, type NamedCalendars } from "../calendar/business-calendar.ts";
import {
  type BusinessTime,
  type BusinessTimeInput,
  explainDay,
  parseBusinessTime,
  type ResolvedDay,
} from "../calendar/business-time.ts";
import { refuse, refuseRange, refuseType, refuseUnknownKeys } from "../errors.ts";
import type { Json } from "../schema.ts";
import {
  type Duration,
  formatDuration,
  type Instant,
  type InstantInput,
  isDurationText,
  isNegativeDuration,
  parseDuration,
  parseInstant,
} from "../time.ts";
import {
  type ClockRule,
  parseWallClock,
  type ResolvedClock,
  resolveWallClock,
  type WallClock,
  type WallClockInput,
} from "./wall-clock.ts";

/**
 * When a timeout is due (SEMANTICS 7.2): a delay (`"24h"`, `{ hours: 24 }`, `{ after: "24h" }`), an instant (a `Date`, a
 * `Temporal.Instant` or `ZonedDateTime`, RFC 3339 with an offset), a time on a wall clock
 * (`{ at: "17:00", days: 7, zone: "Europe/Berlin" }`), or a time by a business calendar
 * (`{ calendar: "frankfurt", workingDays: 2, at: "17:00" }`).
 */
export type When =
  | Duration
  | { readonly after: Duration }
  | InstantInput
  | WallClockInput
  | BusinessTimeInput;

/** What was parsed, and the instant that it means. */
export type ParsedWhen =
  | { readonly kind: "delay"; readonly dueAt: Instant; readonly delay: number }
  | { readonly kind: "instant"; readonly dueAt: Instant }
  | {
      readonly kind: "wall-clock";
      readonly dueAt: Instant;
      readonly wallClock: WallClock;
      readonly resolved: ResolvedClock;
    }
  | {
      readonly kind: "business-time";
      readonly dueAt: Instant;
      readonly wallClock: BusinessTime;
      readonly resolved: ResolvedClock;
      readonly day: ResolvedDay;
    };

/** What the store keeps to resolve the instant again; undefined for a delay or an instant. */
export function wallClockOf(parsed: ParsedWhen): Json | undefined {
  return "wallClock" in parsed ? (parsed.wallClock as unknown as Json) : undefined;
}

const FIX =
  'write a delay such as "24h", an instant (a Date, a Temporal.Instant or ZonedDateTime, RFC 3339 with an offset), ' +
  'a wall clock such as { at: "17:00", zone: "Europe/Berlin" }, or a business calendar such as { calendar: "frankfurt", workingDays: 2 }';
const LOCAL_FIX = 'add an offset ("…Z"), or write a wall clock with a zone: { date, at, zone }';
const LOCAL_TIME = /^(\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?|\d{2}:\d{2}(:\d{2})?)$/;

/** Reads any form of `when`. Zero and the past mean: at once. */
export function parseWhen(
  when: unknown,
  now: Instant,
  field = "when",
  calendars?: NamedCalendars,
): ParsedWhen {
  if (typeof when === "string") return parseText(when, now, field);
  if (typeof when !== "object" || when === null) throw refuse("invalid_when", field, when, FIX);
  if (when instanceof Date || "epochMilliseconds" in when) return parseFixed(when, field);
  if (isPlainTemporal(when)) throw refuseType("invalid_when", field, String(when), LOCAL_FIX);
  if ("after" in when) {
    refuseUnknownKeys(when, field, ["after"]);
    return parseDelay(when.after, now, `${field}.after`);
  }
  if ("calendar" in when) {
    const { time, resolved, day } = parseBusinessTime(when as BusinessTimeInput, now, field, calendars);
    return { kind: "business-time", dueAt: resolved.at, wallClock: time, resolved, day };
  }
  if ("zone" in when || "at" in when || "date" in when) {
    const wallClock = parseWallClock(when as WallClockInput, now, field);
    const resolved = resolveWallClock(wallClock, field);
    return { kind: "wall-clock", dueAt: resolved.at, wallClock, resolved };
  }
  return parseDelay(when, now, field);
}

function parseText(when: string, now: Instant, field: string): ParsedWhen {
  if (isDurationText(when)) return parseDelay(when, now, field);
  if (LOCAL_TIME.test(when)) throw refuseType("invalid_when", field, when, LOCAL_FIX);
  if (/^\d{4}-/.test(when)) return parseFixed(when, field);
  throw refuse("invalid_when", field, when, FIX);
}

function parseFixed(when: unknown, field: string): ParsedWhen {
  return { kind: "instant", dueAt: parseInstant(when, field) };
}

function parseDelay(value: unknown, now: Instant, field: string): ParsedWhen {
  if (isNegativeDuration(value)) {
    const fix = 'use "0s" or an instant that has passed for "at once"';
    throw refuseRange("invalid_when", field, value, fix);
  }
  const delay = parseDuration(value, field, { zero: true });
  return { kind: "delay", dueAt: now + delay, delay };
}

/** `Temporal.PlainDateTime` and similar: local times, which name no instant. */
function isPlainTemporal(value: object): boolean {
  return String((value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag]).startsWith(
    "Temporal.Plain",
  );
}

/** A preview of a `when`: what it means and why. */
export interface WhenExplanation {
  readonly kind: ParsedWhen["kind"];
  readonly dueAt: Instant;
  /** In UTC: `"2030-03-31T01:30:00.000Z"`. */
  readonly instant: string;
  /** What a clock on the wall shows then, if a zone was named. */
  readonly local: string | null;
  readonly zone: string | null;
  /** The business calendar that was used. */
  readonly calendar: string | null;
  readonly offset: string | null;
  readonly rule: "delay" | "instant" | ClockRule;
  /** All of it in one sentence. */
  readonly text: string;
}

const RULES: Readonly<Record<ClockRule, (asked: string) => string>> = {
  exact: (asked) => `${asked} exists once there`,
  "gap-later": (asked) =>
    `${asked} is skipped by a clock change there, so the later time counts (gap: later)`,
  "gap-earlier": (asked) =>
    `${asked} is skipped by a clock change there, so the earlier time counts (gap: earlier)`,
  "overlap-earlier": (asked) => `${asked} occurs twice there, and the first one counts (overlap: earlier)`,
  "overlap-later": (asked) => `${asked} occurs twice there, and the second one counts (overlap: later)`,
};

export interface ExplainWhenOptions {
  readonly now: InstantInput;
  /** The calendars that the `when` may name. `engine.calendars.explain` passes the stored ones. */
  readonly calendars?: NamedCalendars;
}

/** The instant that a `when` means at a given moment, with the offset and the rule that were applied. */
export function explainWhen(when: When, options: ExplainWhenOptions): WhenExplanation {
  refuseUnknownKeys(options, "options", ["now", "calendars"]);
  const { calendars } = options;
  const now = parseInstant(options.now, "options.now");
  const parsed = parseWhen(when, now, "when", calendars);
  const { kind, dueAt } = parsed;
  const instant = new Date(dueAt).toISOString();
  const isDue = dueAt <= now ? ", which is now or has passed: it fires at once" : "";
  if (!("wallClock" in parsed)) {
    const why = parsed.kind === "delay" ? `: ${formatDuration(parsed.delay)} after now` : "";
    const text = `${instant}${why}${isDue}`;
    const none = { local: null, zone: null, calendar: null, offset: null };
    return { kind, dueAt, instant, ...none, rule: parsed.kind, text };
  }
  const { wallClock, resolved } = parsed;
  const { local, offset, rule } = resolved;
  const { zone } = wallClock;
  const calendar = parsed.kind === "business-time" ? parsed.wallClock.calendar : null;
  const day =
    parsed.kind === "business-time"
      ? `${explainDay(findCalendar(calendars, calendar, "when.calendar"), parsed.wallClock, parsed.day)}; `
      : "";
  const text = `${instant} = ${local}${offset} in ${zone}: ${day}${RULES[rule](wallClock.local)}${isDue}`;
  return { kind, dueAt, instant, local, zone, calendar, offset, rule, text };
}
