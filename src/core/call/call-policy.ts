import { refuse, refuseUnknownKeys } from "../errors.ts";
import type { Backoff, TimeoutMode } from "../job/job.ts";
import { BUILT_IN_RETRY, parseRetry, type RetryOptions } from "../job/policy/retry.ts";
import {
  type Adaptive,
  type AdaptiveRule,
  describeLearned,
  isAdaptive,
  type LearnedLimit,
  parseAdaptive,
} from "../stats/adaptive-limit.ts";
import { type Duration, formatDuration, parseDuration } from "../time.ts";

/** The limits of a call, as users write them (SEMANTICS 10.1). */
export interface CallOptions {
  /** From the start of each try to its signal. Default 30 s. `adaptive({ floor, ceiling })` follows the calls of its name. */
  readonly attempt?: Duration | "none" | Adaptive;
  /** From the start of the call through all tries and the backoff between them. Default none. */
  readonly total?: Duration | "none";
  /** From the signal until the caller's promise rejects. Default `"0s"`. */
  readonly grace?: Duration;
  /** What a timeout of a try does: `fail` (the default) allows a retry, `discard` does not. */
  readonly mode?: "fail" | "discard";
  /** Default: one try. */
  readonly retry?: Pick<RetryOptions, "attempts" | "backoff" | "except" | "retryFit">;
}

/** The settings of one source, parsed. A field that is left out falls through to the next source. */
export interface CallSettings {
  readonly attempt?: number | null;
  /** `attempt` is adaptive, and is its ceiling here. */
  readonly adaptive?: AdaptiveRule | undefined;
  readonly total?: number | null;
  readonly grace?: number;
  readonly mode?: TimeoutMode;
  readonly attempts?: number;
  readonly backoff?: Backoff;
  readonly except?: readonly string[];
  readonly retryFit?: "full" | "any";
}

/** The settings that apply. */
export interface CallPolicy {
  readonly attempt: number | null;
  /** The rule behind `attempt`. */
  readonly adaptive?: AdaptiveRule | undefined;
  readonly total: number | null;
  readonly grace: number;
  readonly mode: TimeoutMode;
  readonly attempts: number;
  readonly backoff: Backoff;
  readonly except: readonly string[];
  readonly retryFit: "full" | "any";
  /** A retry is begun only if this many milliseconds are left until the total (SEMANTICS 4.2). */
  readonly retryNeeds: number;
}

const BUILT_IN_CALL: Omit<CallPolicy, "retryNeeds" | "adaptive"> = {
  attempt: 30_000,
  total: null,
  grace: 0,
  mode: "fail",
  attempts: 1,
  backoff: BUILT_IN_RETRY.backoff,
  except: [],
  retryFit: "full",
};

const KEYS: readonly (keyof CallOptions)[] = ["attempt", "total", "grace", "mode", "retry"];
const RETRY_KEYS = ["attempts", "backoff", "except", "retryFit"];

/** Parses the settings of one source. `field` is the prefix in messages; `more` are keys that the caller reads itself. */
export function parseCall(options: CallOptions, field: string, more: readonly string[] = []): CallSettings {
  if (typeof options !== "object" || options === null)
    throw refuse("invalid_option", field, options, 'pass limits such as { attempt: "5s" }');
  refuseUnknownKeys(options, field, [...KEYS, ...more]);
  const limit = (name: "attempt" | "total") => {
    const value = options[name];
    if (value === undefined) return undefined;
    return value === "none" ? null : parseDuration(value, `${field}.${name}`);
  };
  const rule = isAdaptive(options.attempt)
    ? parseAdaptive(options.attempt.adaptive, `${field}.attempt.adaptive`)
    : undefined;
  const attempt = rule ? rule.ceiling : limit("attempt");
  const total = limit("total");
  if (typeof attempt === "number" && typeof total === "number" && total < attempt) {
    const fix = `it is shorter than ${field}.attempt (${formatDuration(attempt)}): make total at least as long`;
    throw refuse("timeouts_contradict", `${field}.total`, options.total, fix);
  }
  const { grace, mode } = options;
  if (mode !== undefined && mode !== "fail" && mode !== "discard")
    throw refuse("invalid_timeout", `${field}.mode`, mode, 'write "fail" or "discard"');
  return {
    // Undefined hides the rule of a less specific source.
    ...(attempt !== undefined && { attempt, adaptive: rule }),
    ...(total !== undefined && { total }),
    ...(grace !== undefined && { grace: parseDuration(grace, `${field}.grace`, { zero: true }) }),
    ...(mode !== undefined && { mode }),
    ...parseCallRetry(options.retry, `${field}.retry`),
  };
}

function parseCallRetry(retry: CallOptions["retry"], field: string): Partial<CallSettings> {
  if (retry === undefined) return {};
  refuseUnknownKeys(retry, field, RETRY_KEYS);
  const { attempts, backoff, except, retryFit } = parseRetry(retry, field);
  return {
    ...(attempts !== undefined && { attempts }),
    ...(backoff !== undefined && { backoff }),
    ...(except !== undefined && { except }),
    ...(retryFit !== undefined && { retryFit }),
  };
}

export type CallSource = "call" | "definition" | "defaults" | "built-in";
export type CallSettingsBySource = Partial<Record<Exclude<CallSource, "built-in">, CallSettings | undefined>>;

const SOURCES = ["call", "definition", "defaults"] as const;

/** The policy of a call: per field, the most specific source wins. */
export function resolveCall(settings: CallSettingsBySource): CallPolicy {
  const { defaults, definition, call } = settings;
  const policy = { ...BUILT_IN_CALL, ...defaults, ...definition, ...call, retryNeeds: 1 };
  const named = call?.attempt ?? definition?.attempt ?? defaults?.attempt;
  // The built-in limit of a try says nothing about how long the function takes.
  if (named !== undefined && policy.retryFit === "full") policy.retryNeeds = policy.attempt ?? 1;
  return policy;
}

/** One field of a call: its value, where it comes from, and what less specific sources say. */
export interface ExplainedField {
  readonly value: unknown;
  readonly source: CallSource;
  readonly lost: readonly { readonly source: CallSource; readonly value: unknown }[];
  /** How an adaptive limit came about. */
  readonly note?: string;
}

export type CallExplanation = { readonly [field in keyof typeof BUILT_IN_CALL]: ExplainedField };

/** `learnedOf` gives what is known about the calls under a rule. */
export function explainCall(
  settings: CallSettingsBySource,
  learnedOf: (rule: AdaptiveRule) => LearnedLimit | undefined = () => undefined,
): CallExplanation {
  const explained = Object.keys(BUILT_IN_CALL).map((name) => {
    const field = name as keyof typeof BUILT_IN_CALL;
    const said: { source: CallSource; value: unknown }[] = [];
    for (const source of SOURCES) {
      const value = settings[source]?.[field];
      if (value !== undefined) said.push({ source, value });
    }
    said.push({ source: "built-in", value: BUILT_IN_CALL[field] });
    const [winner, ...lost] = said;
    const rule = field === "attempt" ? resolveCall(settings).adaptive : undefined;
    if (!rule) return [field, { ...winner, lost }];
    const learned = learnedOf(rule);
    const note = describeLearned(rule, learned);
    return [field, { ...winner, value: learned?.limit ?? rule.ceiling, lost, note }];
  });
  return Object.fromEntries(explained) as CallExplanation;
}
