import { refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import { type Duration, formatDuration, type Instant, parseDuration } from "../time.ts";
import type { LogHistogram } from "./histogram.ts";

/** An attempt timeout that follows the recorded runs, as users write it (SEMANTICS 16). */
export interface AdaptiveOptions {
  /** Which run time counts: the one that this share of the runs does not exceed. Default `"p99"`. */
  readonly from?: Quantile;
  /** The limit is this many times as long, 1 to 100. Default 3. */
  readonly times?: number;
  /** The limit is never shorter. */
  readonly floor: Duration;
  /** The limit is never longer. It applies while there are fewer runs than `samples`. */
  readonly ceiling: Duration;
  /** How many runs the window needs, 10 to 1,000,000. Default 200. */
  readonly samples?: number;
  /** The limit of one period is at most this many times that of the one before, or the reverse: 1.01 to 10. Default 1.5. */
  readonly step?: number;
  /** How long a limit stays as it is, 1 minute to 1 day. Default 1 hour. */
  readonly every?: Duration;
  /** Runs of how long count, at least `every` and at most 30 days. Default 7 days. */
  readonly window?: Duration;
}

export type Quantile = "p50" | "p90" | "p95" | "p99" | "max";

const SHARES: Readonly<Record<Quantile, number>> = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, max: 1 };

/** The parsed rule. Durations in milliseconds. */
export interface AdaptiveRule {
  readonly from: Quantile;
  readonly times: number;
  readonly floor: number;
  readonly ceiling: number;
  readonly samples: number;
  readonly step: number;
  readonly every: number;
  readonly window: number;
}

/** What `adaptive()` returns: plain data, so that it can be sent and stored. */
export interface Adaptive {
  readonly adaptive: AdaptiveOptions;
}

/** An `attempt` timeout that is computed from the recorded runs. Nothing uses it unless a definition says so. */
export function adaptive(options: AdaptiveOptions): Adaptive {
  parseAdaptive(options, "adaptive");
  return Object.freeze({ adaptive: Object.freeze({ ...options }) });
}

export function isAdaptive(value: unknown): value is Adaptive {
  return typeof value === "object" && value !== null && "adaptive" in value;
}

const KEYS = keysOf<AdaptiveOptions>({
  from: true,
  times: true,
  floor: true,
  ceiling: true,
  samples: true,
  step: true,
  every: true,
  window: true,
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function parseAdaptive(options: AdaptiveOptions, field: string): AdaptiveRule {
  if (typeof options !== "object" || options === null)
    throw refuse("invalid_option", field, options, 'pass at least { floor: "5s", ceiling: "10m" }');
  refuseUnknownKeys(options, field, KEYS);
  const { from = "p99", times = 3, samples = 200, step = 1.5 } = options;
  if (!Object.hasOwn(SHARES, from))
    throw refuse("invalid_option", `${field}.from`, from, `use one of ${Object.keys(SHARES).join(", ")}`);
  const floor = parseDuration(options.floor, `${field}.floor`);
  const ceiling = parseDuration(options.ceiling, `${field}.ceiling`);
  if (floor > ceiling)
    throw refuse(
      "timeouts_contradict",
      `${field}.floor`,
      options.floor,
      `it is longer than ${field}.ceiling (${formatDuration(ceiling)}): make it at most as long`,
    );
  const every = between(options.every, HOUR, `${field}.every`, MINUTE, DAY);
  return {
    from,
    times: number(times, `${field}.times`, 1, 100),
    floor,
    ceiling,
    samples: whole(number(samples, `${field}.samples`, 10, 1_000_000), `${field}.samples`),
    step: number(step, `${field}.step`, 1.01, 10),
    every,
    window: between(options.window, Math.max(7 * DAY, every), `${field}.window`, every, 30 * DAY),
  };
}

function number(value: unknown, field: string, least: number, most: number): number {
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw refuse("invalid_option", field, value, `use a number from ${least} to ${most}`);
}

function whole(value: number, field: string): number {
  if (Number.isInteger(value)) return value;
  throw refuse("invalid_option", field, value, "use a whole number");
}

function between(
  value: Duration | undefined,
  usual: number,
  field: string,
  least: number,
  most: number,
): number {
  const parsed = value === undefined ? usual : parseDuration(value, field);
  if (parsed >= least && parsed <= most) return parsed;
  const fix = `use a duration from ${formatDuration(least)} to ${formatDuration(most)}`;
  throw refuse("invalid_option", field, value, fix);
}

/** A rule as a user would have written it, in JSON. */
export function adaptiveOptions({ floor, ceiling, every, window, ...rest }: AdaptiveRule): AdaptiveOptions {
  return { ...rest, floor: text(floor), ceiling: text(ceiling), every: text(every), window: text(window) };
}

function text(milliseconds: number): `${number}ms` {
  return `${milliseconds}ms`;
}

/** Two rules with the same key are the same rule. */
export function ruleKey({ from, times, floor, ceiling, samples, step, every, window }: AdaptiveRule): string {
  return `${from}*${times} ${floor}..${ceiling} ${samples} ${step} ${every} ${window}`;
}

/** The limit of one period, and what it was computed from. Durations in milliseconds. */
export interface LearnedLimit {
  readonly limit: number;
  /** The limit of the period before; the ceiling for the first one. */
  readonly previous: number;
  /** What the runs ask for. `limit` differs from it if that is more than a step away from `previous`. */
  readonly target: number;
  /** The run time of `from`; null if there are too few runs, or if that many of them were cut off. */
  readonly quantile: number | null;
  /** Runs that succeeded, and runs that an attempt timeout cut off. */
  readonly runs: number;
  readonly cut: number;
  /** The runs are from `since` until before `until`, which is when the limit's period begins. */
  readonly since: Instant;
  readonly until: Instant;
}

/** What was recorded in a window. */
export interface RecordedRuns {
  readonly runs: Pick<LogHistogram, "total" | "upperPercentile">;
  /** Runs that an attempt timeout cut off. Nobody knows how long they would have taken. */
  readonly cut: number;
  readonly since: Instant;
  readonly until: Instant;
}

/**
 * The limit of the next period (SEMANTICS 16.2). A run that was cut off counts as longer than all others: without it a
 * limit that cuts would see only shorter and shorter runs, and fall to its floor.
 */
export function nextLimit(
  rule: AdaptiveRule,
  seen: RecordedRuns,
  previous: number = rule.ceiling,
): LearnedLimit {
  const { runs, cut, since, until } = seen;
  const isEnough = runs.total + cut >= rule.samples;
  const quantile = isEnough ? runs.upperPercentile(SHARES[rule.from], cut) : null;
  const asked = quantile === null ? rule.ceiling : Math.ceil(quantile * rule.times);
  const target = within(asked, rule.floor, rule.ceiling);
  // A step of less than a millisecond is one of a millisecond: otherwise a short limit would never change.
  const lowest = Math.min(previous - 1, Math.ceil(previous / rule.step));
  const highest = Math.max(previous + 1, Math.floor(previous * rule.step));
  const limit = within(within(target, lowest, highest), rule.floor, rule.ceiling);
  return { limit, previous, target, quantile, runs: runs.total, cut, since, until };
}

function within(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** The start of the period that contains an instant. Periods are the same in all processes. */
export function periodOf({ every }: Pick<AdaptiveRule, "every">, at: Instant): Instant {
  return Math.floor(at / every) * every;
}

/** The data behind a limit in words; without any, why the ceiling applies. */
export function describeLearned(rule: AdaptiveRule, learned: LearnedLimit | undefined): string {
  const bounds = `${formatDuration(rule.floor)} to ${formatDuration(rule.ceiling)}`;
  const name = `adaptive, ${rule.times} × ${rule.from} within ${bounds}`;
  if (!learned) return `${name}: no period with ${rule.samples} runs yet, so it is the ceiling`;
  const { limit, previous, target, quantile, runs, cut } = learned;
  const from = new Date(learned.since).toISOString();
  const to = new Date(learned.until).toISOString();
  const seen = `${runs} runs and ${cut} cut off from ${from} to ${to}`;
  const asked =
    runs + cut < rule.samples
      ? `fewer than ${rule.samples}, so it goes to the ceiling`
      : quantile === null
        ? `more were cut off than ${rule.from} leaves out, so it goes to the ceiling`
        : `${rule.from} is ${formatDuration(quantile)}, which asks for ${formatDuration(target)}`;
  const step =
    limit === target ? "" : `, in steps of at most × ${rule.step} per ${formatDuration(rule.every)}`;
  return `${name}: ${seen}; ${asked}${step}; it was ${formatDuration(previous)}`;
}
