import { z } from "zod";
import type { FairOptions } from "../../core/fair/fair-options.ts";
import type { Backoff } from "../../core/job/job.ts";
import { type PolicyOptions, ruleOf } from "../../core/job/policy/policy.ts";
import type { RateOptions } from "../../core/limit/limit.ts";
import type { DepthOptions, QueueOptions, StoredQueue } from "../../core/limit/queue-settings.ts";
import { adaptiveOptions } from "../../core/stats/adaptive-limit.ts";
import { durationOf, isoDuration, readIsoDuration } from "../../ojs/wire-durations.ts";
import { adaptiveFields } from "../../ojs/write-enqueue.ts";
import { refusedField } from "../http/http-error.ts";
import { someTime } from "./admin-schemas.ts";
import { readPolicy } from "./enqueue.ts";
import { rateLimitSchema, readRate } from "./limit.ts";
import { iso, kept, optional, queueName, retrySchema, timeoutFields } from "./schemas.ts";

/** Reads and writes the settings of a queue. */

const none = (said: unknown) => said === undefined || said === null || said === 0;

const backpressureSchema = z
  .looseObject({
    max_depth: optional(z.int().min(0).max(1_000_000)).meta({
      description: "How many available and pending jobs the queue may hold; 0 is no bound.",
    }),
    strategy: optional(z.string().max(64)).meta({ description: "reject (the default) or drop_oldest." }),
    warning_threshold: optional(z.number().gt(0).max(1)).meta({
      description: "The share of max_depth from which replies warn, 0.8 if nothing is said.",
    }),
    max_size_bytes: optional(z.int().min(0)),
  })
  .meta({ id: "Backpressure" });

const weight = z.int().min(1).max(1_000);
const weights = z.record(z.string().max(255), weight);

const fairSchema = z
  .looseObject({
    by: optional(z.string().max(140)).meta({
      description: "The key of jobs that name none: type, or a field of meta such as meta.tenant_id.",
    }),
    strategy: optional(z.enum(["round-robin", "weighted"])),
    weights: optional(weights),
    default_weight: optional(weight),
  })
  .meta({
    id: "Fairness",
    description: "Claims take jobs from each fair key in turn, as many as its weight.",
  });

const tenantFairnessSchema = z
  .looseObject({
    enabled: optional(z.boolean()),
    strategy: optional(z.enum(["fair-share", "round-robin", "weighted"])),
    weights: optional(weights),
    default_weight: optional(weight),
  })
  .meta({
    id: "TenantFairness",
    description: "As fair with by: meta.tenant_id. Keys of weights may begin with tenant:.",
  });

const keptFor = z.union([iso, someTime, kept]);
const retentionSchema = z.union([
  keptFor,
  z
    .looseObject({
      completed: optional(keptFor),
      discarded: optional(keptFor),
      cancelled: optional(keptFor),
      dead_letter: optional(z.union([keptFor, z.literal("until_removed")])),
    })
    .meta({ id: "QueueRetention" }),
]);

const queueConfigSchema = z
  .looseObject({
    concurrency: z.int().min(1).max(1_000_000).nullish(),
    backpressure: backpressureSchema.nullish(),
    fair: fairSchema.nullish(),
    tenant_fairness: tenantFairnessSchema.nullish(),
    timeouts: z.looseObject(timeoutFields).meta({ id: "QueueTimeouts" }).nullish(),
    retry: retrySchema.nullish(),
    retention: retentionSchema.nullish(),
    rate_limit: rateLimitSchema.nullish().meta({
      description:
        "Starts of the queue: limit and period. For jobs that are enqueued from then on and name no limit.",
    }),
    default_timeout: optional(z.int().min(1)).meta({ description: "Seconds, as timeouts.timeout." }),
    default_retry: retrySchema.nullish().meta({ description: "As retry." }),
    overflow_policy: optional(z.string().max(64)).meta({ description: "As backpressure.strategy." }),
    dead_letter_ttl: optional(keptFor).meta({ description: "As retention.dead_letter." }),
    max_size: optional(z.int().min(0).max(1_000_000)).meta({ description: "As backpressure.max_depth." }),
  })
  .meta({
    id: "QueueConfig",
    description: "What is named is changed, null takes it back, and everything else stays as it is.",
  });

export const queueConfigChangeSchema = queueConfigSchema
  .extend({
    config: queueConfigSchema
      .nullish()
      .meta({ description: "The same settings, as queue-config writes them." }),
  })
  .meta({ id: "QueueConfigChange", description: "Settings of a queue, flat or in config." });

export const newQueueSchema = queueConfigSchema
  .extend({ name: queueName, config: queueConfigSchema.nullish() })
  .meta({ id: "NewQueue", description: "Settings for a queue." });

type ConfigBody = z.output<typeof queueConfigSchema>;
type Mutable<Options> = { -readonly [name in keyof Options]: Options[name] };

/** What queue-config knows and this server does not. To take it and do nothing would let in what it should keep out. */
const NOT_SERVED: Readonly<Record<string, string>> = {
  allowed_job_types: "a queue takes jobs of every type; give producers keys of their own",
  producers: "a queue takes jobs of every key that may enqueue; use tenants to keep producers apart",
  dead_letter_queue: "dead letters keep their queue; list them with GET /ojs/v1/dead-letter?queue=…",
  dead_letter_max_size: "dead letters are not counted; bound them by dead_letter_ttl",
  max_size_bytes: "queues are bounded by how many jobs wait: send max_size",
  visibility_timeout: "it is of a fetch or a job; send visibility_timeout_ms there",
};

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** The other spellings of queue-config: `config` around them, and names with `default_`. */
function plainConfig({ config, ...flat }: ConfigBody & { readonly config?: ConfigBody | null }): ConfigBody {
  const twice = Object.keys(config ?? {}).find(
    (name) => flat[name] !== undefined && !isSame(flat[name], config?.[name]),
  );
  if (twice !== undefined) throw refusedField(`config.${twice}`, `it contradicts ${twice}; send one of them`);
  const body: ConfigBody = { ...flat, ...config };
  for (const [name, why] of Object.entries(NOT_SERVED)) if (!none(body[name])) throw refusedField(name, why);
  const { default_timeout, default_retry, overflow_policy, dead_letter_ttl, max_size } = body;
  const { backpressure, retention } = body;
  const isBounded = max_size != null || overflow_policy != null;
  return {
    ...body,
    ...(default_timeout != null && { timeouts: { timeout: default_timeout, ...body.timeouts } }),
    ...(default_retry !== undefined && body.retry === undefined && { retry: default_retry }),
    ...(backpressure === undefined &&
      isBounded && {
        backpressure: {
          ...(max_size != null && { max_depth: max_size }),
          ...(overflow_policy != null && { strategy: overflow_policy }),
        },
      }),
    ...(dead_letter_ttl != null && {
      retention: { ...(typeof retention === "object" && retention), dead_letter: dead_letter_ttl },
    }),
  };
}

/** The settings after a change. */
export function changedConfig(stored: StoredQueue, sent: ConfigBody): QueueOptions {
  const body = plainConfig(sent);
  const options: Mutable<QueueOptions> = optionsOf(stored);
  const said: Mutable<QueueOptions> = {};
  const { concurrency, timeouts, retry, retention, backpressure } = body;
  const fairness = fairnessOf(body);
  if (fairness) said.fair = fairness;
  if (concurrency != null) said.concurrency = concurrency;
  if (body.rate_limit != null) said.rate = readQueueRate(body.rate_limit);
  const depth = backpressure && readDepth(backpressure);
  if (depth) said.depth = depth;
  Object.assign(said, readPolicy({ ...timeouts, ...(retry && { retry }) }));
  if (retention != null) said.retention = readRetention(retention);
  const named: [keyof QueueOptions, unknown][] = [
    ["concurrency", concurrency],
    ["rate", body.rate_limit],
    ["depth", backpressure],
    ["fair", fairness],
    ["timeouts", timeouts],
    ["retry", retry],
    ["retention", retention],
  ];
  for (const [name, value] of named) if (value !== undefined) delete options[name];
  return { ...options, ...said };
}

function readQueueRate(body: NonNullable<ConfigBody["rate_limit"]>): RateOptions {
  for (const name of ["key", "concurrency", "on_limit"] as const)
    if (body[name] != null)
      throw refusedField(
        `rate_limit.${name}`,
        "a queue has a rate only; give jobs a limit of their own for this",
      );
  const rate = readRate(body, "rate_limit");
  if (!rate) throw refusedField("rate_limit", "it bounds nothing: send limit and period");
  return rate;
}

/** Undefined: nothing is said about it. Null: the queue is no longer fair. */
function fairnessOf({ fair, tenant_fairness: tenants }: ConfigBody): FairOptions | null | undefined {
  if (fair != null && tenants != null)
    throw refusedField("tenant_fairness", "send fair or tenant_fairness, not both");
  if (fair === null || tenants === null || tenants?.enabled === false) return null;
  const said = fair ?? tenants;
  if (!said) return undefined;
  const by = fair ? fair.by : "meta.tenant_id";
  const strategy = said.strategy === "round-robin" ? said.strategy : undefined;
  return {
    ...(by != null && { by }),
    ...(strategy && { strategy }),
    ...(said.weights && { weights: tenants ? withoutPrefix(said.weights) : said.weights }),
    ...(said.default_weight != null && { defaultWeight: said.default_weight }),
  };
}

function withoutPrefix(said: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(said).map(([key, value]) => [key.replace(/^tenant:/, ""), value]));
}

const STRATEGIES = { reject: "reject", drop_oldest: "drop-oldest" } as const;
const WARNS_AT = 0.8;

function readDepth(body: NonNullable<ConfigBody["backpressure"]>): DepthOptions | undefined {
  const { max_depth, max_size_bytes, warning_threshold } = body;
  const strategy = body.strategy ?? "reject";
  if (!none(max_size_bytes))
    throw refusedField(
      "backpressure.max_size_bytes",
      "queues are bounded by how many jobs wait: send max_depth",
    );
  if (strategy === "block")
    throw refusedField(
      "backpressure.strategy",
      '"block" would keep a connection for every producer: send "reject", and try again after Retry-After',
    );
  if (strategy !== "reject" && strategy !== "drop_oldest")
    throw refusedField("backpressure.strategy", 'send "reject" or "drop_oldest"');
  if (none(max_depth)) return undefined;
  const most = max_depth as number;
  const warnAt = Math.max(1, Math.ceil(most * (warning_threshold ?? WARNS_AT)));
  return { most, onFull: STRATEGIES[strategy], warnAt };
}

type KeptFor = z.output<typeof keptFor>;
const ms = (said: KeptFor) => ({
  milliseconds: typeof said === "number" ? said : (readIsoDuration(said) ?? (durationOf(said) as number)),
});

function readRetention(said: NonNullable<ConfigBody["retention"]>): NonNullable<PolicyOptions["retention"]> {
  if (typeof said !== "object") return ms(said);
  const { completed, discarded, cancelled, dead_letter } = said;
  return {
    ...(completed != null && { completed: ms(completed) }),
    ...(discarded != null && { discarded: ms(discarded) }),
    ...(cancelled != null && { cancelled: ms(cancelled) }),
    ...(dead_letter != null && {
      deadLetter: dead_letter === "until_removed" ? ("until-removed" as const) : ms(dead_letter),
    }),
  };
}

const LIMITS = ["wait", "attempt", "total", "heartbeat"] as const;

/** Stored settings as options. */
function optionsOf({ timeouts, retention, rate, ...rest }: StoredQueue): QueueOptions {
  const limits: Record<string, unknown> = {};
  for (const name of LIMITS) {
    const limit = timeouts?.[name];
    if (limit !== undefined) limits[name] = limit === null ? "none" : { milliseconds: limit };
  }
  const grace = timeouts?.grace;
  if (grace !== undefined) limits.grace = grace === null ? "unbounded" : { milliseconds: grace };
  if (timeouts?.mode !== undefined) limits.mode = timeouts.mode;
  const rule = ruleOf({ timeouts });
  if (rule) limits.attempt = { adaptive: adaptiveOptions(rule) };
  const keptBy =
    retention &&
    Object.fromEntries(
      Object.entries(retention).map(([state, time]) => [
        state,
        time === null ? "until-removed" : { milliseconds: time },
      ]),
    );
  return {
    ...rest,
    ...(rate && { rate: { limit: rate.limit, per: { milliseconds: rate.per } } }),
    ...(timeouts && { timeouts: limits as PolicyOptions["timeouts"] }),
    ...(keptBy && { retention: keptBy as PolicyOptions["retention"] }),
  } as QueueOptions;
}

const isoOf = (time: number | null | undefined) => (time == null ? "until_removed" : isoDuration(time));
const limitOf = (limit: number | null, without = "none") => limit ?? without;

/** Stored settings on the wire, with the fields of the admin UI. `waiting` counts against the bound. */
export function configFields(settings: unknown, waiting: number) {
  const { concurrency, rate, depth, fair, timeouts, retry, retention } = (settings ?? {}) as StoredQueue;
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(rate && { rate_limit: { limit: rate.limit, period: isoDuration(rate.per) } }),
    ...(depth && { backpressure: backpressureFields(depth, waiting) }),
    ...(fair && { fair: fairFields(fair) }),
    ...(timeouts && {
      timeouts: {
        ...(timeouts.attempt !== undefined && { timeout_ms: limitOf(timeouts.attempt) }),
        ...(timeouts.total !== undefined && { total_timeout_ms: limitOf(timeouts.total) }),
        ...(timeouts.wait !== undefined && { enqueue_ttl_ms: limitOf(timeouts.wait) }),
        ...(timeouts.grace !== undefined && { grace_period_ms: limitOf(timeouts.grace, "unbounded") }),
        ...(timeouts.heartbeat !== undefined && { heartbeat_timeout_ms: limitOf(timeouts.heartbeat) }),
        ...(timeouts.mode !== undefined && { timeout_mode: timeouts.mode }),
        ...(timeouts.adaptive && { timeout_adaptive: adaptiveFields(timeouts.adaptive) }),
      },
    }),
    ...(retry && { retry: retryFields(retry) }),
    ...(retention && {
      retention: Object.fromEntries(
        Object.entries(retention).map(([state, time]) => [
          state === "deadLetter" ? "dead_letter" : state,
          isoOf(time as number | null),
        ]),
      ),
    }),
  };
}

function fairFields({ by, strategy, weights: stored, defaultWeight }: NonNullable<StoredQueue["fair"]>) {
  return {
    ...(by !== undefined && { by }),
    strategy,
    ...(stored && { weights: stored }),
    ...(defaultWeight !== undefined && { default_weight: defaultWeight }),
  };
}

function backpressureFields({ most, onFull, warnAt }: NonNullable<StoredQueue["depth"]>, waiting: number) {
  const isWarned = warnAt !== undefined && waiting >= warnAt;
  return {
    enabled: true,
    max_depth: most,
    strategy: onFull === "drop-oldest" ? "drop_oldest" : "reject",
    ...(warnAt !== undefined && { warning_threshold: warnAt / most, threshold: warnAt }),
    current_depth: waiting,
    state: waiting >= most ? "critical" : isWarned ? "warning" : "normal",
  };
}

export function retryFields({ attempts, backoff, except, ...rest }: NonNullable<StoredQueue["retry"]>) {
  return {
    ...(attempts !== undefined && { max_attempts: attempts }),
    ...(backoff && backoffFields(backoff)),
    ...(except && { non_retryable_errors: except }),
    ...(rest.onExhausted && { on_exhaustion: rest.onExhausted === "discard" ? "discard" : "dead_letter" }),
    ...(rest.onStall && { on_stall: rest.onStall }),
    ...(rest.retryFit && { retry_fit: rest.retryFit }),
  };
}

function backoffFields(backoff: Backoff) {
  const { kind, max, jitter } = backoff;
  const common = { backoff_strategy: kind, max_interval_ms: max, jitter };
  if (kind === "delays") return { ...common, delays_ms: backoff.delays };
  const first = { ...common, initial_interval_ms: backoff.first };
  if (kind === "exponential") return { ...first, backoff_coefficient: backoff.factor };
  return kind === "polynomial" ? { ...first, backoff_coefficient: backoff.power } : first;
}
