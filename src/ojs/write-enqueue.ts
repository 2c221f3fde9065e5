import { refuse, refuseUnknownKeys } from "../core/errors.ts";
import { checkFairKey, fairKeyFrom } from "../core/fair/fair-options.ts";
import { UUID_V7 } from "../core/ids.ts";
import { joinRedact, parseRedact, redactTexts } from "../core/job/documents/redaction.ts";
import { ENQUEUE_KEYS, type EnqueueOptions } from "../core/job/enqueue/envelope.ts";
import { copyMeta } from "../core/job/enqueue/job-meta.ts";
import type { Backoff, JobId, PolicySettings } from "../core/job/job.ts";
import {
  type AnyDefinition,
  assertDefinition,
  checkPriority,
  checkQueue,
  type JobDefinition,
  refuseAlone,
} from "../core/job/job-definition.ts";
import { parseSettings, ruleOf } from "../core/job/policy/policy.ts";
import { portableDefinition, portableOptions } from "../core/job/transfer/portable.ts";
import { versionField } from "../core/registry/registered-schema.ts";
import type { AdaptiveRule } from "../core/stats/adaptive-limit.ts";
import { parseDuration, parseInstant } from "../core/time.ts";
import { instantText } from "./wire-fields.ts";
import type {
  WireAdaptive,
  WireEnqueue,
  WireRetention,
  WireRetry,
  WireSettings,
  WireTimeouts,
} from "./wire-types.ts";

/**
 * Everything of an enqueue but its id and payload, in the words of the wire. Whatever can be checked without the
 * server is checked here; whether a job could ever run depends on the server's clock, so the server says that.
 */
export function enqueueFields<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  options: EnqueueOptions | undefined,
  parent: JobId | undefined,
): WireEnqueue {
  assertDefinition(definition, "definition");
  if (definition.parents !== undefined) refuseAlone(definition);
  const said = options ?? {};
  refuseUnknownKeys(said, "options", ENQUEUE_KEYS);
  if (said.tx !== undefined)
    throw refuse(
      "not_over_http",
      "options.tx",
      typeof said.tx,
      "a transaction of yours cannot span a server: use openEngine on the same database, or leave it out",
    );
  if (said.detach !== undefined && typeof said.detach !== "boolean")
    throw refuse("invalid_option", "options.detach", said.detach, "write true or false");
  const { queue = definition.queue, priority = definition.priority } = said;
  const redact = joinRedact(
    definition.redact,
    said.redact === undefined ? [] : parseRedact(said.redact, "options.redact"),
  );
  return {
    type: definition.type,
    queue: checkQueue(queue, "options.queue"),
    ...(checkPriority(priority, "options.priority") !== 0 && { priority }),
    ...(definition.version !== undefined && { version: versionField(definition.version) }),
    ...startFields(said),
    ...(said.meta !== undefined && { meta: copyMeta(said.meta) }),
    ...settingsFields(merged(definition.settings, parseSettings(said, "options"))),
    ...(parent !== undefined && !said.detach && { parent_id: parent }),
    ...(redact.length > 0 && { redact: redactTexts(redact) }),
  };
}

/** The fair key of one job, which may be a function of its payload. */
export function fairFields(
  { fair }: Pick<JobDefinition, "fair">,
  options: EnqueueOptions | undefined,
  payload: unknown,
): Pick<WireEnqueue, "fair_key"> {
  if (options?.fairKey !== undefined) return { fair_key: checkFairKey(options.fairKey, "options.fairKey") };
  return fair === undefined ? {} : { fair_key: fairKeyFrom(fair, payload) };
}

export function checkId(id: string): JobId {
  if (typeof id !== "string" || !UUID_V7.test(id))
    throw refuse("invalid_option", "options.id", id, "use a lower-case UUIDv7 over HTTP, or leave it out");
  return id;
}

/** A delay counts from when the server takes the job in; only an instant names a time of its own. */
function startFields(said: EnqueueOptions): Pick<WireEnqueue, "scheduled_at" | "expires_at"> {
  if (said.delay !== undefined && said.at !== undefined)
    throw refuse("invalid_option", "options.at", said.at, "write either delay or at, not both");
  const delay =
    said.delay === undefined ? 0 : parseDuration(said.delay, "options.delay", { zero: true }) / 1_000;
  return {
    ...(delay > 0 && { scheduled_at: `+PT${delay}S` }),
    ...(said.at !== undefined && { scheduled_at: instantText(parseInstant(said.at, "options.at")) }),
    ...(said.expiresAt !== undefined && {
      expires_at: instantText(parseInstant(said.expiresAt, "options.expiresAt")),
    }),
  };
}

/** The server has no definition, so what it says travels with the job: per field, the enqueue goes first. */
function merged(definition: PolicySettings, enqueue: PolicySettings): PolicySettings {
  const { adaptive: _adaptive, ...timeouts } = { ...definition.timeouts, ...enqueue.timeouts };
  const { total, attempt } = timeouts;
  const rule = enqueue.timeouts?.attempt === undefined ? ruleOf(definition) : ruleOf(enqueue);
  // Written in two places they do not contradict each other: the attempt is cut to the total (SEMANTICS 1.2).
  const isCut = typeof total === "number" && typeof attempt === "number" && total < attempt;
  if (isCut) timeouts.attempt = total;
  const cut = rule && isCut ? { ...rule, ceiling: total, floor: Math.min(rule.floor, total) } : rule;
  return {
    timeouts: { ...timeouts, ...(cut && { adaptive: cut }) },
    retry: { ...definition.retry, ...enqueue.retry },
    retention: { ...definition.retention, ...enqueue.retention },
  };
}

/** What a source says, in the words of the wire. */
export function settingsFields(settings: PolicySettings): WireSettings {
  const { timeouts, retention } = settings;
  const limit = <Name extends keyof WireTimeouts>(
    name: Name,
    value: number | null | undefined,
    none: string,
  ) => (value === undefined ? {} : { [name]: value ?? none }) as Pick<WireTimeouts, Name>;
  const retry = retryFields(settings.retry);
  const rule = ruleOf(settings);
  return {
    ...limit("timeout_ms", timeouts?.attempt, "none"),
    ...(rule && { timeout_adaptive: adaptiveFields(rule) }),
    ...limit("total_timeout_ms", timeouts?.total, "none"),
    ...limit("enqueue_ttl_ms", timeouts?.wait, "none"),
    ...limit("grace_period_ms", timeouts?.grace, "unbounded"),
    ...limit("heartbeat_timeout_ms", timeouts?.heartbeat, "none"),
    ...(timeouts?.mode !== undefined && { timeout_mode: timeouts.mode }),
    ...(settings.retry?.retryFit !== undefined && { retry_fit: settings.retry.retryFit }),
    ...(Object.keys(retry).length > 0 && { retry }),
    ...(retention && Object.keys(retention).length > 0 && { retention_ms: retentionFields(retention) }),
  };
}

/** A rule in the words of the wire. */
export function adaptiveFields({
  floor,
  ceiling,
  every,
  window,
  ...rest
}: AdaptiveRule): Required<WireAdaptive> {
  return { ...rest, floor_ms: floor, ceiling_ms: ceiling, every_ms: every, window_ms: window };
}

function retentionFields({ deadLetter, ...states }: NonNullable<PolicySettings["retention"]>): WireRetention {
  if (deadLetter === undefined) return states;
  return { ...states, dead_letter: deadLetter ?? "until_removed" };
}

function retryFields(retry: PolicySettings["retry"]): WireRetry {
  if (!retry) return {};
  const { attempts, backoff, except, onExhausted, onStall } = retry;
  return {
    ...(attempts !== undefined && { max_attempts: attempts }),
    ...(backoff && backoffFields(backoff)),
    ...(except && { non_retryable_errors: [...except] }),
    ...(onExhausted && { on_exhaustion: onExhausted === "dead-letter" ? "dead_letter" : "discard" }),
    ...(onStall && { on_stall: onStall }),
  };
}

function backoffFields(backoff: Backoff): WireRetry {
  const { kind, max, jitter } = backoff;
  const common = { backoff_strategy: kind, max_interval_ms: max, jitter };
  if (kind === "delays") return { ...common, delays_ms: [...backoff.delays] };
  return {
    ...common,
    initial_interval_ms: backoff.first,
    ...(kind === "exponential" && { backoff_coefficient: backoff.factor }),
    ...(kind === "polynomial" && { backoff_coefficient: backoff.power }),
  };
}

/** Options that have fields of their own on the wire, and those that are never sent. */
const OWN_FIELDS: readonly string[] = [
  "id",
  "queue",
  "priority",
  "delay",
  "at",
  "expiresAt",
  "meta",
  "timeouts",
  "retry",
  "retention",
  "detach",
  "redact",
  "tx",
];

/**
 * What Open Job Spec has no words for, in the words of the engine: `unique` with a key or paths of the payload, `limit`,
 * and every other option. The payload is needed because the key of a limit may be a function of it.
 */
export function exactOptions(
  definition: AnyDefinition,
  options: EnqueueOptions | undefined,
  payload: unknown,
): WireEnqueue["curfew"] {
  const { limit, unique, ...rest } = portableOptions(options);
  const usual = definition.limit || definition.unique ? portableDefinition(definition, payload) : undefined;
  const exact = {
    ...Object.fromEntries(Object.entries(rest).filter(([name]) => !OWN_FIELDS.includes(name))),
    ...((limit ?? usual?.limit) !== undefined && { limit: limit ?? usual?.limit }),
    ...((unique ?? usual?.unique) !== undefined && { unique: unique ?? usual?.unique }),
  };
  return Object.keys(exact).length === 0 ? undefined : (exact as unknown as WireEnqueue["curfew"]);
}

/** The body of an enqueue: the payload is JSON text already and is put in as it is. */
export function enqueueText(
  fields: WireEnqueue,
  id: JobId,
  payload: string,
  curfew?: WireEnqueue["curfew"],
): string {
  const body = curfew ? { ...fields, curfew, id } : { ...fields, id };
  return `${JSON.stringify(body).slice(0, -1)},"args":[${payload}]}`;
}
