import { refuse } from "../../errors.ts";
import { isObject } from "../../is-object.ts";
import {
  type AdaptiveRule,
  adaptiveOptions,
  type LearnedLimit,
  parseAdaptive,
} from "../../stats/adaptive-limit.ts";
import { INSTANT_LIMIT, LONGEST_DURATION } from "../../time.ts";
import { parseRedact } from "../documents/redaction.ts";
import {
  type Backoff,
  type ErrorRecord,
  type JobOptions,
  type Pace,
  POLICY_FIELDS,
  type Policy,
  type PolicySettings,
  type TimeoutSettings,
} from "../job.ts";

/** Refuses a value that does not have the expected shape. `field` is its path in messages. */
type Check = (value: unknown, field: string) => void;

const MOST_ATTEMPTS = 1_000_000;

function fits(is: (value: unknown) => boolean, fix: string): Check {
  return (value, field) => {
    if (!is(value)) throw refuse("invalid_option", field, value, fix);
  };
}

const isWhole = (value: unknown, most: number) =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most;

const flag = fits((value) => typeof value === "boolean", "use true or false");
const yes = fits((value) => value === true, "use true, or leave it out");
const text = fits((value) => typeof value === "string", "use a text");
const milliseconds = fits(
  (value) => isWhole(value, LONGEST_DURATION),
  "use whole milliseconds, at most 10 years",
);
const instant = fits((value) => isWhole(value, INSTANT_LIMIT - 1), "use whole milliseconds since 1970");
const count = fits((value) => isWhole(value, MOST_ATTEMPTS), `use a whole number up to ${MOST_ATTEMPTS}`);
const factor = fits(
  (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
  "use a number from 0",
);
const json: Check = () => {};

function oneOf(...names: readonly string[]): Check {
  return fits((value) => names.includes(value as string), `use one of ${names.join(", ")}`);
}

function nullable(check: Check): Check {
  return (value, field) => {
    if (value !== null) check(value, field);
  };
}

function list(check: Check, most = 10_000, least = 0): Check {
  return (value, field) => {
    if (!Array.isArray(value) || value.length > most || value.length < least)
      throw refuse("invalid_option", field, value, `use a list of ${least} to ${most}`);
    for (const [index, each] of value.entries()) check(each, `${field}[${index}]`);
  };
}

const asObject = fits(isObject, "use an object");

/** One check for each field of a type: a field that is added to the type and not here does not compile. */
type ChecksOf<Type> = {
  readonly [Name in keyof Type & string as Record<never, never> extends Pick<Type, Name>
    ? `${Name}?`
    : Name]-?: Check;
};

function objectOf<Type>(fields: ChecksOf<Type>): Check {
  return object(fields as Readonly<Record<string, Check>>);
}

/** An object with these fields. A name that ends in `?` may be left out. Other fields are refused. */
function object(fields: Readonly<Record<string, Check>>): Check {
  const checks = new Map(
    Object.entries(fields).map(([name, check]) => [name.replace(/\?$/, ""), { check, name }] as const),
  );
  return (value, field) => {
    asObject(value, field);
    const given = value as Record<string, unknown>;
    for (const name of Object.keys(given))
      if (!checks.has(name))
        throw refuse("unknown_option", `${field}.${name}`, name, `use ${[...checks.keys()].join(", ")}`);
    for (const [name, { check, name: written }] of checks) {
      const each = given[name];
      if (each !== undefined || !written.endsWith("?")) check(each, `${field}.${name}`);
    }
  };
}

const SOURCES = oneOf("enqueue", "definition", "queue", "engine", "built-in");
const MODE = oneOf("fail", "discard");

const delays = { max: milliseconds, jitter: flag };
const BACKOFFS: Readonly<Record<Backoff["kind"], Check>> = {
  constant: object({ kind: text, first: milliseconds, ...delays }),
  linear: object({ kind: text, first: milliseconds, ...delays }),
  exponential: object({ kind: text, first: milliseconds, factor, ...delays }),
  polynomial: object({ kind: text, first: milliseconds, power: factor, ...delays }),
  delays: object({ kind: text, delays: list(milliseconds, 1_000, 1), ...delays }),
};

/** An object whose `kind` says what else it has. */
function byKind(kinds: Readonly<Record<string, Check>>): Check {
  return (value, field) => {
    asObject(value, field);
    const { kind } = value as { kind?: unknown };
    oneOf(...Object.keys(kinds))(kind, `${field}.kind`);
    kinds[kind as string]?.(value, field);
  };
}

const backoff = byKind(BACKOFFS);

const RETRY = {
  attempts: count,
  backoff,
  except: list(text, 1_000),
  retryFit: oneOf("full", "any"),
  onStall: oneOf("retry", "discard"),
  onExhausted: oneOf("discard", "dead-letter"),
};
const RETENTION = {
  completed: milliseconds,
  discarded: milliseconds,
  cancelled: milliseconds,
  "deadLetter?": nullable(milliseconds),
};

function optionalFields(fields: Readonly<Record<string, Check>>): Record<string, Check> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, check]) => [name.endsWith("?") ? name : `${name}?`, check]),
  );
}

const adaptiveRule: Check = (value, field) => {
  asObject(value, field);
  parseAdaptive(adaptiveOptions(value as AdaptiveRule), field);
};

const learned = objectOf<LearnedLimit>({
  limit: milliseconds,
  previous: milliseconds,
  target: factor,
  quantile: nullable(factor),
  runs: factor,
  cut: factor,
  since: instant,
  until: instant,
});

const policy = objectOf<Policy>({
  attempt: nullable(milliseconds),
  "adaptive?": object({ rule: adaptiveRule, learned: nullable(learned) }),
  grace: nullable(milliseconds),
  heartbeat: nullable(milliseconds),
  mode: MODE,
  retry: object(RETRY),
  retention: object(RETENTION),
  beats: oneOf("worker", "handler"),
  hears: flag,
  "visibility?": milliseconds,
  "worker?": text,
  "caller?": text,
  sources: object(Object.fromEntries(POLICY_FIELDS.map((field) => [field, SOURCES]))),
});

const settings = objectOf<PolicySettings>({
  "timeouts?": objectOf<TimeoutSettings>({
    "wait?": nullable(milliseconds),
    "attempt?": nullable(milliseconds),
    "adaptive?": adaptiveRule,
    "total?": nullable(milliseconds),
    "grace?": nullable(milliseconds),
    "heartbeat?": nullable(milliseconds),
    "mode?": MODE,
  }),
  "retry?": object(optionalFields(RETRY)),
  "retention?": object(optionalFields(RETENTION)),
});

const limit = object({
  "concurrency?": count,
  "rate?": object({ limit: count, per: milliseconds }),
  "strict?": yes,
  "onLimit?": (value, field) =>
    value === "drop" ? undefined : object({ after: milliseconds })(value, field),
});

const PACES: Readonly<Record<Pace["kind"], Check>> = {
  debounce: object({ kind: text, quiet: milliseconds, most: nullable(milliseconds) }),
  throttle: object({ kind: text, period: milliseconds }),
};

const redact: Check = (value, field) => {
  list(list(text))(value, field);
  parseRedact(value, field);
};

/** Fields that clients sent are put into replies as they are. */
const wire = object({
  "fields?": asObject,
  "spread?": yes,
  "sequence?": count,
  "stepIndex?": json,
  "metadata?": json,
});

const options = objectOf<Omit<JobOptions, "step" | "parentResults" | "importing">>({
  "settings?": settings,
  "wait?": milliseconds,
  "total?": milliseconds,
  "waitFrom?": SOURCES,
  "totalFrom?": SOURCES,
  "anchoredAt?": instant,
  "expiresAt?": instant,
  "inheritedFrom?": text,
  "onExhausted?": RETRY.onExhausted,
  "retention?": object(RETENTION),
  "visibility?": milliseconds,
  "limit?": limit,
  "replacedBy?": text,
  "pace?": byKind(PACES),
  "awaited?": yes,
  "meta?": asObject,
  "wire?": wire,
  "redact?": redact,
});

const cause = object({ type: text, "code?": text, message: text, "stack?": text });

const error = objectOf<ErrorRecord>({
  type: text,
  code: text,
  message: text,
  attempt: count,
  at: instant,
  "kind?": oneOf("execution", "total", "enqueue_ttl", "stalled"),
  "limit?": milliseconds,
  "elapsed?": factor,
  "cause?": cause,
  "stack?": text,
  "predicted?": yes,
  "forced?": yes,
  "details?": json,
});

/** The documents of a job as another store wrote them. What does not fit would stop a sweep later, so it is refused. */
export function checkOptions(value: unknown, field: string): JobOptions {
  options(value, field);
  return value as JobOptions;
}

export function checkPolicy(value: unknown, field: string): Policy {
  policy(value, field);
  return value as Policy;
}

/** More errors than any retry policy keeps are refused. */
const MOST_ERRORS = 1_000;

export function checkErrors(value: unknown, field: string): readonly ErrorRecord[] {
  list(error, MOST_ERRORS)(value, field);
  return value as readonly ErrorRecord[];
}
