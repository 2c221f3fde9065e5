import { refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import { type Duration, parseDuration } from "../time.ts";

/**
 * What a limit lets through: at most so many jobs at once, and at most so many starts in any span of so many
 * milliseconds. It says nothing where it bounds nothing.
 */
export interface KeyLimit {
  readonly concurrency?: number;
  readonly rate?: Rate;
  /** A job that waits for its retry keeps its place, so that none of its key overtakes it. */
  readonly strict?: true;
}

export interface Rate {
  readonly limit: number;
  readonly per: number;
}

/** What becomes of a job that finds its limit closed, where it shall not simply wait: it is dropped, or comes again later. */
export type OnLimit = "drop" | { readonly after: number };

/** The limit that a job carries: whoever frees a place of its limit knows by it how many may follow. */
export interface JobLimit extends KeyLimit {
  readonly onLimit?: OnLimit;
}

/** What an operator says about a key, over whatever its jobs say; null lifts a part, and what is left out stays theirs. */
export interface LimitOverride {
  readonly concurrency?: number | null;
  readonly rate?: Rate | null;
}

export interface RateOptions {
  /** So many starts … */
  readonly limit: number;
  /** … in any span of this length. */
  readonly per: Duration;
}

/** A limit as it is written in a definition or at an enqueue. */
export interface LimitOptions<Key = string> {
  /** Jobs with the same key share the limit, whatever their type and queue. */
  readonly key: Key;
  /** At most so many of them run at once, over all workers. */
  readonly concurrency?: number;
  readonly rate?: RateOptions;
  /** With `concurrency: 1`: one after the other, and none overtakes one that waits for its retry. */
  readonly strict?: boolean;
  /** What becomes of a job that cannot run yet: it waits (the default), is dropped, or comes again after a while. */
  readonly onLimit?: "wait" | "drop" | { readonly reschedule: Duration };
}

/** A parsed limit, and the key that goes with it or gives it. */
export interface KeyedLimit {
  readonly key: string | ((payload: never) => string);
  readonly limit: JobLimit;
}

/** What is in use of a limit: admitted jobs by where they stand, and starts that are remembered for a rate. */
export interface KeyUse {
  readonly available: number;
  readonly active: number;
  /** Of those active, the ones whose handlers have not been entered. */
  readonly unstarted: number;
  readonly retryable: number;
  readonly starts: number;
}

const MOST = 1_000_000;
const KEY_LIMIT = 255;
/** Limits that begin so are marks of queues, see `queueMark` of the store port. */
const RESERVED = "queue ";
const KEYS = keysOf<LimitOptions>({ key: true, concurrency: true, rate: true, strict: true, onLimit: true });

export function parseLimit(options: LimitOptions<unknown>, field: string): KeyedLimit {
  refuseUnknownKeys(options, field, KEYS);
  const { key, concurrency, rate, strict, onLimit } = options;
  if (concurrency === undefined && rate === undefined)
    throw refuse("invalid_limit", field, options, "name concurrency or rate, or leave the limit out");
  if (strict !== undefined && typeof strict !== "boolean")
    throw refuse("invalid_option", `${field}.strict`, strict, "write true or false");
  if (strict && (rate !== undefined || concurrency !== 1))
    throw refuse(
      "invalid_limit",
      `${field}.strict`,
      strict,
      "it goes with concurrency: 1 and without a rate",
    );
  return {
    key: typeof key === "function" ? (key as KeyedLimit["key"]) : checkLimitKey(key, `${field}.key`),
    limit: {
      ...(concurrency !== undefined && { concurrency: checkCount(concurrency, `${field}.concurrency`) }),
      ...(rate !== undefined && { rate: parseRate(rate, `${field}.rate`) }),
      ...(strict && { strict }),
      ...parseOnLimit(onLimit, `${field}.onLimit`),
    },
  };
}

/** An operator's word on a key. */
export function parseOverride(
  options: { readonly concurrency?: number | "none"; readonly rate?: RateOptions | "none" },
  field: string,
): LimitOverride {
  refuseUnknownKeys(options, field, ["concurrency", "rate"]);
  const { concurrency, rate } = options;
  if (concurrency === undefined && rate === undefined)
    throw refuse("invalid_limit", field, options, 'name concurrency or rate; "none" lifts one');
  return {
    ...(concurrency !== undefined && {
      concurrency: concurrency === "none" ? null : checkCount(concurrency, `${field}.concurrency`),
    }),
    ...(rate !== undefined && { rate: rate === "none" ? null : parseRate(rate, `${field}.rate`) }),
  };
}

function parseRate(rate: RateOptions, field: string): Rate {
  refuseUnknownKeys(rate, field, ["limit", "per"]);
  return { limit: checkCount(rate.limit, `${field}.limit`), per: parseDuration(rate.per, `${field}.per`) };
}

function parseOnLimit(onLimit: unknown, field: string): { onLimit?: OnLimit } {
  if (onLimit === undefined || onLimit === "wait") return {};
  if (onLimit === "drop") return { onLimit };
  if (typeof onLimit !== "object" || onLimit === null)
    throw refuse("invalid_option", field, onLimit, 'write "wait", "drop" or { reschedule: "30s" }');
  refuseUnknownKeys(onLimit, field, ["reschedule"]);
  const { reschedule } = onLimit as { readonly reschedule: unknown };
  return { onLimit: { after: parseDuration(reschedule, `${field}.reschedule`) } };
}

export function checkCount(count: unknown, field: string, most = MOST): number {
  if (typeof count !== "number" || !Number.isInteger(count) || count < 1 || count > most)
    throw refuse("invalid_limit", field, count, `use a whole number from 1 to ${most}`);
  return count;
}

export function checkLimitKey(key: unknown, field: string): string {
  if (typeof key !== "string" || key === "" || key.length > KEY_LIMIT)
    throw refuse("invalid_name", field, key, `use a text of 1 to ${KEY_LIMIT} characters`);
  if (key.startsWith(RESERVED))
    throw refuse(
      "invalid_name",
      field,
      key,
      `"${RESERVED}" marks jobs of queues with a concurrency; begin it otherwise`,
    );
  return key;
}

/** The limit that holds: an operator's word goes before what the jobs say. */
export function effectiveLimit(own: KeyLimit, override: LimitOverride | null | undefined): KeyLimit {
  if (!override) return own;
  const concurrency = override.concurrency === undefined ? own.concurrency : override.concurrency;
  const rate = override.rate === undefined ? own.rate : override.rate;
  return {
    ...(concurrency != null && { concurrency }),
    ...(rate != null && { rate }),
    ...(own.strict && { strict: own.strict }),
  };
}

/**
 * How many more a limit may let through. A place is taken from the admission of a job until it leaves active; a start
 * counts from the admission too, because nobody knows when a worker will take the job, and then until `per` after it.
 */
export function roomOf(limit: KeyLimit, use: KeyUse): number {
  const held = use.available + use.active + (limit.strict ? use.retryable : 0);
  const places = limit.concurrency === undefined ? Number.POSITIVE_INFINITY : limit.concurrency - held;
  const starts =
    limit.rate === undefined
      ? Number.POSITIVE_INFINITY
      : limit.rate.limit - use.available - use.unstarted - use.starts;
  return Math.max(0, Math.min(places, starts));
}
