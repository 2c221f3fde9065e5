import { refuseUnknownKeys, show } from "../../core/errors.ts";
import { pathsWithin, payloadPaths, type RedactPath } from "../../core/job/documents/redaction.ts";
import { ENQUEUE_KEYS, type EnqueueOptions } from "../../core/job/enqueue/envelope.ts";
import type { Backoff, JobOptions, JobRow, PolicySettings } from "../../core/job/job.ts";
import { DEFAULT_QUEUE, defineJob, type JobDefinition } from "../../core/job/job-definition.ts";
import { type PolicyOptions, parseSettings, type RetentionOptions } from "../../core/job/policy/policy.ts";
import type { RetryOptions } from "../../core/job/policy/retry.ts";
import { restoreValue } from "../../core/redact.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import type { Adaptive } from "../../core/stats/adaptive-limit.ts";
import type { Duration, Instant } from "../../core/time.ts";
import type { RemoteJob } from "../../engine/remote/service.ts";
import { readInstant, readIsoDuration } from "../../ojs/wire-durations.ts";
import type { WireAdaptive } from "../../ojs/wire-types.ts";
import { HttpError, refusedField } from "../http/http-error.ts";
import { readLimit } from "./limit.ts";
import type { DefinitionBody, EnqueueBody, RetryBody } from "./schemas.ts";
import { readUnique } from "./unique.ts";
import { splitType } from "./versions.ts";

/** Fields that the server manages. A client's values are ignored. */
const MANAGED = new Set([
  "specversion",
  "state",
  "attempt",
  "max_attempts",
  "created_at",
  "enqueued_at",
  "started_at",
  "completed_at",
  "cancelled_at",
  "discarded_at",
  "error",
  "errors",
  "result",
  "next_attempt_at",
  "retry_delay_ms",
  "parent_results",
  "checkpoint",
  "progress",
  "fence",
  "deadlines",
  "worker_id",
  "beats",
  "dead_letter",
  "redacted",
]);

/** Fields that the engine stores by itself. All others are kept and returned unchanged. */
const READ = new Set([
  "type",
  "args",
  "id",
  "meta",
  "metadata",
  "options",
  "queue",
  "priority",
  "fair_key",
  "pending",
  "timeout",
  "timeout_ms",
  "total_timeout",
  "total_timeout_ms",
  "enqueue_ttl",
  "enqueue_ttl_ms",
  "grace_period",
  "grace_period_ms",
  "heartbeat_timeout",
  "heartbeat_timeout_ms",
  "visibility_timeout",
  "visibility_timeout_ms",
  "timeout_mode",
  "timeout_adaptive",
  "retry_fit",
  "scheduled_at",
  "delay_until",
  "expires_at",
  "parent_id",
  "curfew",
  "redact",
]);

type Fields = { readonly [name: string]: unknown };

const PLAIN = new Set(["type", "args", "id", "queue"]);

/** Whether a body has only the fields that nearly every job has. Looking for each of the others takes longer than all else. */
function isPlain(body: EnqueueBody): boolean {
  for (const name in body) if (!PLAIN.has(name) && (body as Fields)[name] !== undefined) return false;
  return true;
}

/** A field from `options`, or from the top level. */
function field(body: EnqueueBody, name: string): unknown {
  const options = body.options as Fields | null | undefined;
  return options?.[name] ?? (body as Fields)[name] ?? undefined;
}

const definitions = new Map<string, JobDefinition<unknown, unknown, unknown>>();
const MOST_DEFINITIONS = 10_000;

/** A producer over HTTP has only the type, so the server makes a definition. */
function definitionOf(type: string): JobDefinition<unknown, unknown, unknown> {
  const known = definitions.get(type);
  if (known) return known;
  if (definitions.size >= MOST_DEFINITIONS) definitions.clear();
  const definition = defineJob({ type }) as JobDefinition<unknown, unknown, unknown>;
  definitions.set(type, definition);
  return definition;
}

/** Reads a job from the wire. */
export function readJob(said: EnqueueBody, now: Instant, documentLimit: number): RemoteJob {
  const { type, version } = splitType(said.type);
  // A field for the version goes before the version in the type (job-versioning 5.3).
  const body = version === undefined || field(said, "version") !== undefined ? said : { ...said, version };
  const isSpread = body.args.length !== 1;
  const payload = toJsonText(isSpread ? body.args : body.args[0], "args", documentLimit);
  const definition = definitionOf(type);
  if (!isSpread && isPlain(body)) {
    const { id, queue } = body;
    return { definition, payload, options: { ...(id && { id }), ...(queue != null && { queue }) } };
  }
  const visibility = readVisibility(body);
  return {
    definition,
    payload,
    options: readOptions(body, now),
    isPending: field(body, "pending") === true,
    visibility,
    wire: keptFields(body, isSpread),
    parent: body.parent_id ?? undefined,
  };
}

/**
 * The body of a copy with the redacted values of its source filled in, each at its own place. The copy hides what its
 * source hides, whatever the body says: otherwise a copy would show it.
 */
export function filledCopy(body: EnqueueBody, source: JobRow): EnqueueBody {
  const redact = source.options?.redact;
  if (redact === undefined) return body;
  const payload: unknown = JSON.parse(source.payload);
  const wasSpread = (source.options?.wire as { spread?: true } | undefined)?.spread === true;
  const args = wasSpread ? payload : [payload];
  const within = payloadPaths(source.options).map((path) => (wasSpread ? path : ["0", ...path]));
  const isSameForm = (body.args.length !== 1) === wasSpread;
  const said = field(body, "redact") as readonly RedactPath[] | undefined;
  return {
    ...body,
    args: (isSameForm ? restoreValue(body.args, args, within) : body.args) as EnqueueBody["args"],
    ...(body.meta && {
      meta: restoreValue(body.meta, source.options?.meta, pathsWithin(redact, "meta")) as Record<
        string,
        Json
      >,
    }),
    options: { ...body.options, redact: [...redact, ...(said ?? [])] as EnqueueBody["redact"] },
  };
}

function readOptions(body: EnqueueBody, now: Instant): EnqueueOptions {
  const options: { -readonly [name in keyof EnqueueOptions]: EnqueueOptions[name] } = {};
  const queue = field(body, "queue");
  const priority = field(body, "priority");
  const startAt = startOf(body);
  const expiresAt = field(body, "expires_at");
  if (body.id) options.id = body.id;
  if (queue !== undefined) options.queue = queue as string;
  if (priority !== undefined) options.priority = priority as number;
  const fairKey = field(body, "fair_key");
  if (fairKey !== undefined) options.fairKey = fairKey as string;
  if (startAt !== undefined) Object.assign(options, readStart(startAt as string, now));
  if (expiresAt !== undefined)
    options.expiresAt = { epochMilliseconds: readInstant(expiresAt as string, now, "expires_at") };
  const timeouts = readTimeouts(body);
  if (timeouts) options.timeouts = timeouts;
  const retry = readRetry(field(body, "retry") as RetryBody | undefined, field(body, "retry_fit"));
  if (retry) options.retry = retry;
  const retention = readRetention(field(body, "retention_ms"));
  if (retention) options.retention = retention;
  const redact = field(body, "redact");
  if (redact !== undefined) options.redact = redact as NonNullable<EnqueueOptions["redact"]>;
  const unique = field(body, "unique") as EnqueueBody["unique"];
  if (unique) options.unique = readUnique(unique, body.args.length !== 1);
  const limit = field(body, "rate_limit") as EnqueueBody["rate_limit"];
  if (limit) options.limit = readLimit(limit, options.queue ?? DEFAULT_QUEUE);
  if (body.curfew) Object.assign(options, readExact(body.curfew));
  const metadata = (body.options as Fields | null | undefined)?.metadata ?? (body as Fields).metadata;
  const inner = body.options?.meta;
  if (body.meta || inner || metadata)
    options.meta = { ...(metadata as object | undefined), ...inner, ...body.meta } as Record<string, Json>;
  return options;
}

/** Options in the words of the engine, from our own client. The engine checks their values. */
function readExact(said: object): Partial<EnqueueOptions> {
  refuseUnknownKeys(said, "curfew", EXACT);
  return said;
}

const EXACT = ENQUEUE_KEYS.filter((name) => name !== "id" && name !== "tx" && name !== "detach");

/** A relative start counts from the job's creation, like its timeouts. */
function readStart(text: string, now: Instant): Pick<EnqueueOptions, "at" | "delay"> {
  const delay = text.startsWith("+") ? readIsoDuration(text.slice(1)) : undefined;
  if (delay !== undefined) return { delay: durationOf(delay) };
  return { at: { epochMilliseconds: readInstant(text, now, "scheduled_at") } };
}

const LIMITS = [
  ["attempt", "timeout"],
  ["total", "total_timeout"],
  ["wait", "enqueue_ttl"],
  ["grace", "grace_period"],
  ["heartbeat", "heartbeat_timeout"],
] as const;

function readTimeouts(body: EnqueueBody): EnqueueOptions["timeouts"] {
  const timeouts: Record<string, unknown> = {};
  for (const [name, wire] of LIMITS) {
    const value = oneSpelling(body, wire);
    if (value !== undefined) timeouts[name] = typeof value === "number" ? durationOf(value) : value;
  }
  const mode = field(body, "timeout_mode");
  if (mode !== undefined) timeouts.mode = mode;
  const rule = field(body, "timeout_adaptive");
  if (rule) timeouts.attempt = readAdaptive(rule as WireAdaptive, oneSpelling(body, "timeout"));
  for (const name in timeouts) if (name) return timeouts as EnqueueOptions["timeouts"];
  return undefined;
}

/** Clients send the ceiling as `timeout_ms` too, for servers that do not know adaptive limits. */
function readAdaptive(rule: WireAdaptive, attempt: number | string | undefined): Adaptive {
  if (attempt !== undefined && attempt !== rule.ceiling_ms)
    throw contradiction("timeout", attempt, `timeout_adaptive.ceiling_ms: ${rule.ceiling_ms}`);
  const { floor_ms, ceiling_ms, every_ms, window_ms, ...rest } = rule;
  return {
    adaptive: {
      ...rest,
      floor: durationOf(floor_ms),
      ceiling: durationOf(ceiling_ms),
      ...(every_ms !== undefined && { every: durationOf(every_ms) }),
      ...(window_ms !== undefined && { window: durationOf(window_ms) }),
    },
  };
}

/** When it starts, under either name. */
function startOf(body: EnqueueBody): unknown {
  const [said, other] = [field(body, "scheduled_at"), field(body, "delay_until")];
  if (said !== undefined && other !== undefined && said !== other)
    throw refusedField(
      "delay_until",
      `${show(other)} contradicts scheduled_at: ${show(said)}; send one of them`,
    );
  return said ?? other;
}

/** A timeout in seconds or milliseconds. Both may be sent if they are equal. */
function oneSpelling(body: EnqueueBody, wire: string): number | string | undefined {
  const inSeconds = field(body, wire) as number | string | undefined;
  const inMs = field(body, `${wire}_ms`) as number | string | undefined;
  const fromSeconds = typeof inSeconds === "number" ? inSeconds * 1_000 : inSeconds;
  if (inMs !== undefined && fromSeconds !== undefined && inMs !== fromSeconds) {
    throw contradiction(wire, inMs, inSeconds);
  }
  return inMs ?? fromSeconds;
}

function contradiction(wire: string, inMs: unknown, other: unknown): HttpError {
  return refusedField(`${wire}_ms`, `${inMs} contradicts ${wire}: ${other}; send one of them`);
}

/** As text, since a refusal shows it: nobody sent an object. */
function durationOf(ms: number): Duration {
  return `${ms}ms`;
}

function readVisibility(body: EnqueueBody): number | undefined {
  return visibilityOf(field(body, "visibility_timeout_ms"), field(body, "visibility_timeout"));
}

/** The visibility timeout in any spelling. */
export function visibilityOf(inMs: unknown, other: unknown): number | undefined {
  const exact = typeof inMs === "number" ? inMs : undefined;
  const fromOther =
    typeof other === "number"
      ? other * 1_000
      : typeof other === "string"
        ? readIsoDuration(other)
        : undefined;
  if (exact !== undefined && fromOther !== undefined && exact !== fromOther)
    throw contradiction("visibility_timeout", inMs, other);
  return exact ?? fromOther;
}

/** Missing fields get the defaults of the specification. */
function readRetry(retry: RetryBody | undefined, retryFit: unknown): RetryOptions | undefined {
  if (!retry && retryFit === undefined) return undefined;
  const { max_attempts, non_retryable_errors, on_exhaustion, on_stall } = retry ?? {};
  const backoff = retry && readBackoff(retry);
  return {
    // Both 0 and 1 mean: no retry.
    ...(typeof max_attempts === "number" && { attempts: Math.max(1, max_attempts) }),
    ...(backoff && { backoff }),
    ...(non_retryable_errors && { except: non_retryable_errors }),
    ...(on_exhaustion && { onExhausted: on_exhaustion === "dead_letter" ? "dead-letter" : "discard" }),
    ...(on_stall && { onStall: on_stall }),
    ...(retryFit !== undefined && { retryFit: retryFit as "full" | "any" }),
  };
}

function readRetention(said: unknown): RetentionOptions | undefined {
  if (said === undefined || said === null) return undefined;
  if (typeof said === "number") return durationOf(said);
  const named: [string, unknown][] = TERMINALS.flatMap((state) => {
    const kept = (said as Fields)[state];
    return typeof kept === "number" ? [[state, durationOf(kept)]] : [];
  });
  const dead = (said as Fields).dead_letter;
  if (typeof dead === "number") named.push(["deadLetter", durationOf(dead)]);
  if (dead === "until_removed") named.push(["deadLetter", "until-removed"]);
  return named.length === 0 ? undefined : Object.fromEntries(named);
}

const TERMINALS = ["completed", "discarded", "cancelled"] as const;

/** The settings of a worker's definitions, by job type. */
export function readDefinitions(
  said: { readonly [type: string]: DefinitionBody } | null | undefined,
): ReadonlyMap<string, PolicySettings> | undefined {
  if (!said) return undefined;
  const types = Object.entries(said);
  if (types.length > MOST_NAMED) {
    throw new HttpError(400, "invalid_request", `definitions: name at most ${MOST_NAMED} job types`);
  }
  return new Map(
    types.map(([type, body]) => {
      return [type, parseSettings(readPolicy(body), `definitions.${type}`)] as const;
    }),
  );
}

export function readPolicy(body: DefinitionBody): PolicyOptions {
  const timeouts = readTimeouts(body as EnqueueBody);
  const retry = readRetry(body.retry ?? undefined, body.retry_fit ?? undefined);
  const retention = readRetention(body.retention_ms);
  return { ...(timeouts && { timeouts }), ...(retry && { retry }), ...(retention && { retention }) };
}

/** Bytes of the fields of a job that the engine does not know. */
const MOST_UNKNOWN = 64_000;
const MOST_NAMED = 200;
const FIRST = 1_000;
const MAX = 300_000;

function readBackoff(retry: RetryBody): Backoff | undefined {
  const first =
    retry.initial_interval_ms ?? retry.initial_delay_ms ?? readIsoDuration(retry.initial_interval ?? "");
  const most = retry.max_interval_ms ?? readIsoDuration(retry.max_interval ?? "");
  const kind = retry.backoff_strategy ?? retry.strategy ?? undefined;
  const factor = retry.backoff_coefficient ?? undefined;
  if (kind === "delays" && retry.delays_ms) {
    const delays = retry.delays_ms;
    return { kind, delays, max: most ?? Math.max(...delays), jitter: retry.jitter ?? false };
  }
  const isNamed = [first, most, kind, factor, retry.jitter ?? undefined].some((part) => part !== undefined);
  if (!isNamed) return undefined;
  const common = { first: first ?? FIRST, max: most ?? MAX, jitter: retry.jitter ?? true };
  if (kind === "none" || kind === "constant") return { kind: "constant", ...common };
  if (kind === "linear") return { kind, ...common };
  if (kind === "polynomial") return { kind, ...common, power: factor ?? 2 };
  return { kind: "exponential", ...common, factor: factor ?? 2 };
}

/** Fields that the engine does not know, to be returned unchanged. The specification wants `options` flattened. */
function keptFields(body: EnqueueBody, isSpread: boolean): JobOptions["wire"] {
  const kept: Record<string, Json> = {};
  // A field may be named like a member of every object, such as `constructor`.
  for (const part of [body.options, body] as (Fields | null | undefined)[]) {
    for (const name in part) {
      if (READ.has(name) || MANAGED.has(name) || part[name] === undefined) continue;
      if (!Object.hasOwn(kept, name)) kept[name] = part[name] as Json;
    }
  }
  // Instants are echoed as they were written; a relative one is echoed as its instant.
  for (const name of ["scheduled_at", "delay_until", "expires_at"]) {
    const text = field(body, name);
    if (typeof text === "string" && !text.startsWith("+")) kept[name] = text;
  }
  let hasKept = false;
  for (const name in kept) hasKept = name !== "" || hasKept;
  if (!hasKept && !isSpread) return undefined;
  const wire = { ...(hasKept && { fields: kept }), ...(isSpread && { spread: true as const }) };
  return JSON.parse(toJsonText(wire, "unknown fields", MOST_UNKNOWN)) as JobOptions["wire"];
}
