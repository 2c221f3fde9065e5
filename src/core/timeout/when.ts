import { refuse, refuseRange, refuseType, refuseUnknownKeys } from "../errors.ts";
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
 * `Temporal.Instant` or `ZonedDateTime`, RFC 3339 with an offset), or a time on a wall clock
 * (`{ at: "17:00", days: 7, zone: "Europe/Berlin" }`).
 */
export type When = Duration | { readonly after: Duration } | InstantInput | WallClockInput;

/** What was parsed, and the instant that it means. */
export type ParsedWhen =
  | { readonly kind: "delay"; readonly dueAt: Instant; readonly delay: number }
  | { readonly kind: "instant"; readonly dueAt: Instant }
  | {
      readonly kind: "wall-clock";
      readonly dueAt: Instant;
      readonly wallClock: WallClock;
      readonly resolved: ResolvedClock;
    };

const FIX =
  'write a delay such as "24h", an instant (a Date, a Temporal.Instant or ZonedDateTime, RFC 3339 with an offset), ' +
  'or a wall clock such as { at: "17:00", zone: "Europe/Berlin" }';
const LOCAL_FIX = 'add an offset ("…Z"), or write a wall clock with a zone: { date, at, zone }';
const LOCAL_TIME = /^(\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?|\d{2}:\d{2}(:\d{2})?)$/;

/** Reads any form of `when`. Zero and the past mean: at once. */
export function parseWhen(when: unknown, now: Instant, field = "when"): ParsedWhen {
  if (typeof when === "string") return parseText(when, now, field);
  if (typeof when !== "object" || when === null) throw refuse("invalid_when", field, when, FIX);
  if (when instanceof Date || "epochMilliseconds" in when) return parseFixed(when, field);
  if (isPlainTemporal(when)) throw refuseType("invalid_when", field, String(when), LOCAL_FIX);
  if ("after" in when) {
    refuseUnknownKeys(when, field, ["after"]);
    return parseDelay(when.after, now, `${field}.after`);
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

/** The instant that a `when` means at a given moment, with the offset and the rule that were applied. */
export function explainWhen(when: When, options: { readonly now: InstantInput }): WhenExplanation {
  refuseUnknownKeys(options, "options", ["now"]);
  const now = parseInstant(options.now, "options.now");
  const parsed = parseWhen(when, now);
  const { kind, dueAt } = parsed;
  const instant = new Date(dueAt).toISOString();
  const isDue = dueAt <= now ? ", which is now or has passed: it fires at once" : "";
  if (parsed.kind !== "wall-clock") {
    const why = parsed.kind === "delay" ? `: ${formatDuration(parsed.delay)} after now` : "";
    const text = `${instant}${why}${isDue}`;
    return { kind, dueAt, instant, local: null, zone: null, offset: null, rule: parsed.kind, text };
  }
  const { wallClock, resolved } = parsed;
  const { local, offset, rule } = resolved;
  const text = `${instant} = ${local}${offset} in ${wallClock.zone}: ${RULES[rule](wallClock.local)}${isDue}`;
  return { kind, dueAt, instant, local, zone: wallClock.zone, offset, rule, text };
}
