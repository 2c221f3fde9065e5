import { refuse, refuseUnknownKeys } from "../../errors.ts";
import { keysOf } from "../../option-keys.ts";
import type { Random } from "../../random.ts";
import { type Duration, formatDuration, parseDuration } from "../../time.ts";
import type { Backoff, RetryPolicy } from "../job.ts";

interface BackoffOptions {
  readonly first?: Duration;
  /** The longest delay, jitter included. */
  readonly max?: Duration;
  /** Multiplies each delay by a random factor in [0.5, 1.5), so that failed jobs do not all retry at the same time. */
  readonly jitter?: boolean;
}

const DEFAULT_FIRST = 1_000;
const DEFAULT_MAX = 300_000;

function common(options: BackoffOptions, field: string, more: readonly string[] = []) {
  refuseUnknownKeys(options, field, ["first", "max", "jitter", ...more]);
  const first =
    options.first === undefined
      ? DEFAULT_FIRST
      : parseDuration(options.first, `${field}.first`, { zero: true });
  const max =
    options.max === undefined ? Math.max(first, DEFAULT_MAX) : parseDuration(options.max, `${field}.max`);
  if (max < first) {
    throw refuse(
      "invalid_retry",
      `${field}.max`,
      options.max,
      `use at least first (${formatDuration(first)})`,
    );
  }
  return { first, max, jitter: checkJitter(options.jitter ?? true, field) };
}

/** The same delay each time. */
export function constant(options: BackoffOptions = {}): Backoff {
  return { kind: "constant", ...common(options, "constant") };
}

/** `first`, twice `first`, three times `first` … */
export function linear(options: BackoffOptions = {}): Backoff {
  return { kind: "linear", ...common(options, "linear") };
}

/** `first`, `first * factor`, `first * factor^2` … */
export function exponential(options: BackoffOptions & { readonly factor?: number } = {}): Backoff {
  return {
    kind: "exponential",
    ...common(options, "exponential", ["factor"]),
    factor: atLeastOne(options.factor ?? 2, "exponential.factor"),
  };
}

/** `first * n^power` before retry n. */
export function polynomial(options: BackoffOptions & { readonly power?: number } = {}): Backoff {
  return {
    kind: "polynomial",
    ...common(options, "polynomial", ["power"]),
    power: atLeastOne(options.power ?? 2, "polynomial.power"),
  };
}

/** Exactly these delays. The last one applies to all further retries. */
export function delays(
  list: readonly Duration[],
  options: { readonly max?: Duration; readonly jitter?: boolean } = {},
): Backoff {
  refuseUnknownKeys(options, "delays", ["max", "jitter"]);
  if (!Array.isArray(list) || list.length === 0 || list.length > 100) {
    throw refuse("invalid_retry", "delays", list, "name 1 to 100 delays");
  }
  const parsed = list.map((delay, index) => parseDuration(delay, `delays[${index}]`, { zero: true }));
  const max = options.max === undefined ? Math.max(...parsed) : parseDuration(options.max, "delays.max");
  return { kind: "delays", delays: parsed, max, jitter: checkJitter(options.jitter ?? false, "delays") };
}

function checkJitter(jitter: boolean, field: string): boolean {
  if (typeof jitter !== "boolean")
    throw refuse("invalid_retry", `${field}.jitter`, jitter, "write true or false");
  return jitter;
}

function atLeastOne(value: number, field: string): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 1 || value > 100) {
    throw refuse("invalid_retry", field, value, "use a number from 1 to 100");
  }
  return value;
}

/** A backoff in words, for `explain()`. */
export function describeBackoff(backoff: Backoff): string {
  const { kind, max, jitter } = backoff;
  const spread = jitter ? ", jitter" : "";
  if (kind === "constant") return `constant ${formatDelay(Math.min(backoff.first, max))}${spread}`;
  const start =
    kind === "delays" ? backoff.delays.map(formatDelay).join(", ") : `from ${formatDelay(backoff.first)}`;
  const growth =
    kind === "exponential" ? `, x${backoff.factor}` : kind === "polynomial" ? `, power ${backoff.power}` : "";
  return `${kind} ${start}${growth}, at most ${formatDelay(max)}${spread}`;
}

function formatDelay(delay: number): string {
  return delay === 0 ? "0s" : formatDuration(delay);
}

/** Milliseconds before retry number `retry` (1 is the first). Capped, then spread by jitter, then capped again. */
export function backoffDelay(backoff: Backoff, retry: number, random: Random): number {
  const capped = Math.min(plainDelay(backoff, retry), backoff.max);
  if (!backoff.jitter) return Math.round(capped);
  return Math.min(Math.round(capped * (0.5 + random())), backoff.max);
}

function plainDelay(backoff: Backoff, retry: number): number {
  switch (backoff.kind) {
    case "constant":
      return backoff.first;
    case "linear":
      return backoff.first * retry;
    case "exponential":
      // The power may overflow to Infinity, and 0 * Infinity is NaN.
      return backoff.first === 0 ? 0 : backoff.first * backoff.factor ** (retry - 1);
    case "polynomial":
      return backoff.first === 0 ? 0 : backoff.first * retry ** backoff.power;
    case "delays":
      // A list without any came with an import of an earlier version.
      return backoff.delays[Math.min(retry, backoff.delays.length) - 1] ?? backoff.max;
  }
}

/** The defaults of Open Job Spec: 3 attempts, exponential from 1 s, doubling, at most 5 min, jitter on. */
export const BUILT_IN_RETRY: RetryPolicy = {
  attempts: 3,
  backoff: { kind: "exponential", first: DEFAULT_FIRST, factor: 2, max: DEFAULT_MAX, jitter: true },
  except: [],
  retryFit: "full",
  onStall: "retry",
  onExhausted: "discard",
};

export interface RetryOptions {
  /** All attempts, the first included, from 1 to 1,000. Default 3. */
  readonly attempts?: number;
  /** `constant()`, `linear()`, `exponential()`, `polynomial()` or `delays()`. Default exponential from 1 s to 5 min, with jitter. */
  readonly backoff?: Backoff;
  /** Error types that are not retried: an exact name, or `Prefix.*`. Default none. */
  readonly except?: readonly string[];
  /**
   * `"full"`: a retry must fit into the total budget with its whole attempt timeout. `"any"`: it starts while any
   * budget is left. Default `"full"`.
   */
  readonly retryFit?: "full" | "any";
  /** `"discard"` forbids a second run after a crash or stall. Default `"retry"`. */
  readonly onStall?: "retry" | "discard";
  /** `"dead-letter"` keeps a job whose attempts or budget are used up as a dead letter. Default `"discard"`. */
  readonly onExhausted?: "discard" | "dead-letter";
}

const RETRY_KEYS = keysOf<RetryOptions>({
  attempts: true,
  backoff: true,
  except: true,
  retryFit: true,
  onStall: true,
  onExhausted: true,
});
const MOST_ATTEMPTS = 1_000;

export function parseRetry(options: RetryOptions, field: string): Partial<RetryPolicy> {
  refuseUnknownKeys(options, field, RETRY_KEYS);
  const { attempts, backoff, except } = options;
  if (attempts !== undefined && (!Number.isInteger(attempts) || attempts < 1 || attempts > MOST_ATTEMPTS)) {
    throw refuse(
      "invalid_retry",
      `${field}.attempts`,
      attempts,
      `use a whole number from 1 to ${MOST_ATTEMPTS}`,
    );
  }
  if (backoff !== undefined && !isBackoff(backoff)) {
    throw refuse(
      "invalid_retry",
      `${field}.backoff`,
      backoff,
      "build it with constant(), linear(), exponential(), polynomial() or delays()",
    );
  }
  if (
    except !== undefined &&
    !(
      Array.isArray(except) &&
      except.length <= 100 &&
      except.every((name) => typeof name === "string" && name !== "")
    )
  ) {
    throw refuse(
      "invalid_retry",
      `${field}.except`,
      except,
      'list at most 100 error types such as "timeout" or "Card.*"',
    );
  }
  oneOf(options.retryFit, ["full", "any"], `${field}.retryFit`);
  oneOf(options.onStall, ["retry", "discard"], `${field}.onStall`);
  oneOf(options.onExhausted, ["discard", "dead-letter"], `${field}.onExhausted`);
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Partial<RetryPolicy>;
}

function oneOf(value: string | undefined, allowed: readonly string[], field: string): void {
  if (value !== undefined && !allowed.includes(value)) {
    throw refuse("invalid_retry", field, value, `write ${allowed.map((word) => `"${word}"`).join(" or ")}`);
  }
}

const BACKOFF_NUMBERS: Readonly<Record<Backoff["kind"], readonly string[]>> = {
  constant: ["first"],
  linear: ["first"],
  exponential: ["first", "factor"],
  polynomial: ["first", "power"],
  delays: [],
};

/** A backoff written by hand must be complete: a missing number would make the next start NaN. */
function isBackoff(value: unknown): value is Backoff {
  if (typeof value !== "object" || value === null) return false;
  const { kind, max, jitter, ...rest } = value as Record<string, unknown>;
  if (typeof kind !== "string" || !Object.hasOwn(BACKOFF_NUMBERS, kind)) return false;
  const list =
    kind === "delays" ? rest.delays : BACKOFF_NUMBERS[kind as Backoff["kind"]].map((name) => rest[name]);
  if (!Array.isArray(list) || list.length === 0 || typeof jitter !== "boolean") return false;
  return [max, ...list].every((number) => Number.isFinite(number) && (number as number) >= 0);
}

/** Whether `except` names this error: exactly, or by a `Prefix.*` that it begins with. */
export function isExcepted(except: readonly string[], type: string): boolean {
  return except.some((name) => (name.endsWith(".*") ? type.startsWith(name.slice(0, -1)) : type === name));
}
