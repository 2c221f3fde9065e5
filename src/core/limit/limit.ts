import { checkCount, refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import { refuseTenantMark } from "../tenant/tenant-name.ts";
import { type Duration, parseDuration } from "../time.ts";

/**
 * At most `concurrency` jobs at once, and at most `rate.limit` starts in any period of `rate.per` milliseconds. A
 * field that is left out bounds nothing.
 */
export interface KeyLimit {
  readonly concurrency?: number;
  readonly rate?: Rate;
  /** A job that waits for its retry keeps its slot, so that no other job of its key overtakes it. */
  readonly strict?: true;
}

export interface Rate {
  readonly limit: number;
  readonly per: number;
}

/** What to do with a job whose limit is reached, if it should not wait: drop it, or schedule it again later. */
export type OnLimit = "drop" | { readonly after: number };

/** The limit on a job. When the job frees a slot, it tells how many jobs may follow. */
export interface JobLimit extends KeyLimit {
  readonly onLimit?: OnLimit;
}

/** An operator's override of a key's limit. null removes a part; a part that is left out stays as the jobs say. */
export interface LimitOverride {
  readonly concurrency?: number | null;
  readonly rate?: Rate | null;
}

export interface RateOptions {
  /** The most starts … */
  readonly limit: number;
  /** … in any period of this length. */
  readonly per: Duration;
}

/** A limit in a definition or an enqueue. */
export interface LimitOptions<Key = string> {
  /** Jobs with the same key share the limit, across types and queues. */
  readonly key: Key;
  /** The most jobs of the key that run at once, over all workers. */
  readonly concurrency?: number;
  readonly rate?: RateOptions;
  /** With `concurrency: 1`: runs jobs one after the other. None overtakes one that waits for its retry. */
  readonly strict?: boolean;
  /** What to do with a job that cannot run yet: it waits (the default), is dropped, or is scheduled again later. */
  readonly onLimit?: "wait" | "drop" | { readonly reschedule: Duration };
}

/** A parsed limit, and its key or the function that computes it. */
export interface KeyedLimit {
  readonly key: string | ((payload: never) => string);
  readonly limit: JobLimit;
}

/** How much of a limit is in use: admitted jobs by state, and the starts that its rate still counts. */
export interface KeyUse {
  readonly available: number;
  readonly active: number;
  /** The active jobs whose handlers have not started. */
  readonly unstarted: number;
  readonly retryable: number;
  readonly starts: number;
}

const MOST = 1_000_000;
const KEY_LIMIT = 255;
/** Limit keys with this prefix are marks of queues; see `queueMark` in the store port. */
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
    throw refuse("invalid_limit", `${field}.strict`, strict, "combine it with concurrency: 1 and no rate");
  return {
    key: typeof key === "function" ? (key as KeyedLimit["key"]) : checkLimitKey(key, `${field}.key`),
    limit: {
      ...(concurrency !== undefined && {
        concurrency: checkCount(concurrency, `${field}.concurrency`, MOST),
      }),
      ...(rate !== undefined && { rate: parseRate(rate, `${field}.rate`) }),
      ...(strict && { strict }),
      ...parseOnLimit(onLimit, `${field}.onLimit`),
    },
  };
}

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
      concurrency: concurrency === "none" ? null : checkCount(concurrency, `${field}.concurrency`, MOST),
    }),
    ...(rate !== undefined && { rate: rate === "none" ? null : parseRate(rate, `${field}.rate`) }),
  };
}

export function parseRate(rate: RateOptions, field: string): Rate {
  refuseUnknownKeys(rate, field, ["limit", "per"]);
  return {
    limit: checkCount(rate.limit, `${field}.limit`, MOST),
    per: parseDuration(rate.per, `${field}.per`),
  };
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

/** The limit key of jobs that are bounded by the rate of their queue. */
export function queueLimitKey(queue: string): string {
  return `queue:${queue}`;
}

/** The limit of a job: that of its enqueue, else of its definition, else the rate of its queue. */
export function limitFor(
  said: LimitOptions | "none" | undefined,
  defined: KeyedLimit | undefined,
  queue: string,
  rate: Rate | undefined,
): KeyedLimit | undefined {
  if (said === undefined) return defined ?? (rate && { key: queueLimitKey(queue), limit: { rate } });
  return said === "none" ? undefined : parseLimit(said, "options.limit");
}

export function checkLimitKey(key: unknown, field: string): string {
  if (typeof key !== "string" || key === "" || key.length > KEY_LIMIT)
    throw refuse("invalid_name", field, key, `use a text of 1 to ${KEY_LIMIT} characters`);
  if (key.startsWith(RESERVED))
    throw refuse(
      "invalid_name",
      field,
      key,
      `"${RESERVED}" marks jobs of queues with a concurrency; use another beginning`,
    );
  return refuseTenantMark(key, field);
}

export function limitKeyFrom(key: (payload: never) => string, payload: unknown): string {
  return checkLimitKey(key(payload as never), "limit.key(payload)");
}

/** The limit that applies: an operator's override goes before what the jobs say. */
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
 * How many more jobs a limit admits. A slot is taken from the admission of a job until it leaves active. A start
 * counts from the admission too, because nobody knows when a worker will take the job, and then until `per` after the
 * start.
 */
export function roomOf(limit: KeyLimit, use: KeyUse): number {
  const taken = use.available + use.active + (limit.strict ? use.retryable : 0);
  const slots = limit.concurrency === undefined ? Number.POSITIVE_INFINITY : limit.concurrency - taken;
  const starts =
    limit.rate === undefined
      ? Number.POSITIVE_INFINITY
      : limit.rate.limit - use.available - use.unstarted - use.starts;
  return Math.max(0, Math.min(slots, starts));
}
