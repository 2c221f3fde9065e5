import { refuse, refuseUnknownKeys } from "../../errors.ts";
import { checkLimitKey, type KeyedLimit, type LimitOptions, parseLimit } from "../../limit/limit.ts";
import { type Json, toJsonText } from "../../schema.ts";
import { adaptiveOptions } from "../../stats/adaptive-limit.ts";
import { type DurationText, parseDuration, parseInstant } from "../../time.ts";
import { parseRedact } from "../documents/redaction.ts";
import { ENQUEUE_KEYS, type EnqueueOptions } from "../enqueue/envelope.ts";
import { parseUnique, portableUnique } from "../enqueue/unique-key.ts";
import type { PolicySettings } from "../job.ts";
import type { AnyDefinition, DefinitionOptions } from "../job-definition.ts";
import { type PolicyOptions, parseSettings, ruleOf } from "../policy/policy.ts";

/** What `defineJob` needs to make a definition again, without its schemas: they are code and cannot be sent. */
export type PortableDefinition = DefinitionOptions<undefined, undefined>;

/** The options of an enqueue that can be sent: all except the caller's transaction. */
export type PortableOptions = Omit<EnqueueOptions, "tx">;

/**
 * A definition as JSON, for one payload that another process enqueues, or that is enqueued later. A limit key that is
 * a function cannot be sent, so it is evaluated here.
 */
export function portableDefinition(definition: AnyDefinition, payload?: unknown): PortableDefinition {
  const { type, queue, priority, unique, limit, settings, redact } = definition;
  return {
    type,
    queue,
    priority,
    ...(unique && { unique: portableUnique(unique) }),
    ...(limit && { limit: portableLimit(limit, payload) }),
    ...(redact.length > 0 && { redact }),
    ...policyOptions(settings),
  };
}

/** A limit as a user would have written it. */
function portableLimit({ key, limit }: KeyedLimit, payload: unknown): LimitOptions {
  const { concurrency, rate, strict, onLimit } = limit;
  return {
    key: typeof key === "string" ? key : checkLimitKey(key(payload as never), "limit.key(payload)"),
    ...(concurrency !== undefined && { concurrency }),
    ...(rate && { rate: { limit: rate.limit, per: inText(rate.per) } }),
    ...(strict && { strict }),
    ...(onLimit && { onLimit: onLimit === "drop" ? onLimit : { reschedule: inText(onLimit.after) } }),
  };
}

/** The options of an enqueue as JSON. Instants and durations of every kind become equivalent texts. */
export function portableOptions(options: EnqueueOptions = {}): PortableOptions {
  refuseUnknownKeys(options, "options", ENQUEUE_KEYS);
  const { id, queue, priority, detach, delay, at, expiresAt, meta, unique, limit, redact, tx } = options;
  if (tx !== undefined)
    throw refuse(
      "invalid_option",
      "options.tx",
      "a transaction",
      "leave it out: a transaction cannot be sent to another process",
    );
  return {
    ...(id !== undefined && { id }),
    ...(queue !== undefined && { queue }),
    ...(priority !== undefined && { priority }),
    ...(detach !== undefined && { detach }),
    ...(delay !== undefined && { delay: inText(parseDuration(delay, "options.delay", { zero: true })) }),
    ...(at !== undefined && { at: new Date(parseInstant(at, "options.at")).toISOString() }),
    ...(expiresAt !== undefined && {
      expiresAt: new Date(parseInstant(expiresAt, "options.expiresAt")).toISOString(),
    }),
    ...(meta !== undefined && {
      meta: JSON.parse(toJsonText(meta, "options.meta")) as { [key: string]: Json },
    }),
    ...(unique !== undefined && {
      unique: unique === false ? false : portableUnique(parseUnique(unique, "options.unique")),
    }),
    ...(limit !== undefined && {
      limit: limit === "none" ? limit : portableLimit(parseLimit(limit, "options.limit"), undefined),
    }),
    ...(redact !== undefined && { redact: parseRedact(redact, "options.redact") }),
    ...policyOptions(parseSettings(options, "options")),
  };
}

/** Settings as a user would have written them. */
function policyOptions({ timeouts, retry, retention }: PolicySettings): PolicyOptions {
  const { adaptive: _adaptive, ...limits } = timeouts ?? {};
  const rule = ruleOf({ timeouts });
  return {
    ...(timeouts && {
      timeouts: {
        ...inTexts(limits, (name) => (name === "grace" ? "unbounded" : "none")),
        ...(rule && { attempt: { adaptive: adaptiveOptions(rule) } }),
      },
    }),
    ...(retry && { retry }),
    ...(retention && { retention: inTexts(retention, () => "none") }),
  } as PolicyOptions;
}

function inTexts(limits: object, never: (name: string) => string): object {
  return Object.fromEntries(
    Object.entries(limits).map(([name, value]) => [
      name,
      value === null ? never(name) : typeof value === "number" ? inText(value) : value,
    ]),
  );
}

function inText(milliseconds: number): DurationText {
  return `${milliseconds}ms`;
}
