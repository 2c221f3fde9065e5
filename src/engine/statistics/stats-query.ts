import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { type AdaptiveOptions, parseAdaptive } from "../../core/stats/adaptive-limit.ts";
import {
  type Duration,
  type Instant,
  type InstantInput,
  parseDuration,
  parseInstant,
} from "../../core/time.ts";

/** Options of `engine.stats`. */
export interface StatsQuery {
  /** From this instant on; a duration counts back from `until`. Default: the last hour. */
  readonly since?: InstantInput | Duration;
  /** Before this instant. Default: now. */
  readonly until?: InstantInput;
  readonly queue?: string;
  readonly type?: string;
  /** The width of a point. Default: a width that gives about 60 points. */
  readonly step?: Duration;
  /** What the rows of `groups` are. Default: each pair of queue and type. */
  readonly by?: "pair" | "queue" | "type";
}

/** Options of `engine.advise`. */
export interface AdviseQuery {
  readonly type?: string;
  readonly queue?: string;
  /** An attempt timeout to check against the recorded runs. */
  readonly attempt?: Duration;
  /** An adaptive attempt timeout to replay on the recorded runs of `type`. */
  readonly adaptive?: AdaptiveOptions;
  /** Runs from this instant on; a duration counts back from now. Default: the last 7 days. */
  readonly since?: InstantInput | Duration;
}

export interface Range {
  readonly since: Instant;
  readonly until: Instant;
  readonly queue: string | undefined;
  readonly type: string | undefined;
}

const HOUR = 3_600_000;
const WEEK = 7 * 24 * HOUR;
const USUAL_POINTS = 60;
const MOST_POINTS = 2_000;
/** Round widths in minutes. */
const WIDTHS = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1_440, 7 * 1_440].map((minutes) => minutes * 60_000);
const LONGEST = WIDTHS.at(-1) as number;
const SHORTEST = WIDTHS[0] as number;

const DURATION_TEXT = /^\d+(\.\d+)?(ms|s|m|h|d)$/;

export function parseStats(query: StatsQuery, now: Instant) {
  refuseUnknownKeys(query, "stats", ["since", "until", "queue", "type", "step", "by"]);
  const until = query.until === undefined ? now + 1 : parseInstant(query.until, "stats.until");
  const range = parseRange(query, "stats", until, HOUR);
  const { by = "pair" } = query;
  if (by !== "pair" && by !== "queue" && by !== "type")
    throw refuse("invalid_option", "stats.by", by, 'use "pair", "queue" or "type"');
  const step = query.step === undefined ? usualStep(range) : parseDuration(query.step, "stats.step");
  if (step < SHORTEST)
    throw refuse(
      "invalid_option",
      "stats.step",
      query.step,
      'use at least "1m": stats are stored by the minute',
    );
  if ((range.until - range.since) / step > MOST_POINTS)
    throw refuse(
      "invalid_option",
      "stats.step",
      query.step,
      `use a wider step: this range would have more than ${MOST_POINTS} points`,
    );
  return { ...range, by, step };
}

export function parseAdvise(query: AdviseQuery, now: Instant) {
  refuseUnknownKeys(query, "advise", ["type", "queue", "attempt", "adaptive", "since"]);
  const rule = query.adaptive && parseAdaptive(query.adaptive, "advise.adaptive");
  if (rule && query.type === undefined)
    throw refuse("invalid_option", "advise.type", query.type, "name the type whose runs are replayed");
  const attempt = query.attempt === undefined ? undefined : parseDuration(query.attempt, "advise.attempt");
  return { ...parseRange(query, "advise", now + 1, WEEK), attempt, rule };
}

function parseRange(
  { since, queue, type }: Pick<StatsQuery, "since" | "queue" | "type">,
  field: string,
  until: Instant,
  usual: number,
): Range {
  const from = since === undefined ? until - usual : parseSince(since, `${field}.since`, until);
  if (from >= until)
    throw refuse("invalid_option", `${field}.since`, since, "use an instant before `until` (default: now)");
  for (const [name, value] of Object.entries({ queue, type })) {
    if (value !== undefined && (typeof value !== "string" || value === ""))
      throw refuse("invalid_option", `${field}.${name}`, value, `name a ${name}, or leave it out for all`);
  }
  return { since: Math.max(0, from), until, queue, type };
}

function parseSince(since: InstantInput | Duration, field: string, until: Instant): Instant {
  const isDuration =
    typeof since === "string"
      ? DURATION_TEXT.test(since)
      : !(since instanceof Date) && !("epochMilliseconds" in since);
  return isDuration ? until - parseDuration(since, field) : parseInstant(since, field);
}

function usualStep({ since, until }: Range): number {
  const fitting = (until - since) / USUAL_POINTS;
  return WIDTHS.find((width) => width >= fitting) ?? Math.ceil(fitting / LONGEST) * LONGEST;
}
