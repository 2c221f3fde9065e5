import { refuse, refuseUnknownKeys } from "../../errors.ts";
import type { NewEvent } from "../../event/new-event.ts";
import { type FairKeySource, fairKeyFrom, fairSource } from "../../fair/fair-options.ts";
import { isInOneHome, placedId } from "../../home/place-job.ts";
import type { IdSource } from "../../ids.ts";
import { type KeyedLimit, type LimitOptions, limitFor, limitKeyFrom } from "../../limit/limit.ts";
import type { StoredQueue } from "../../limit/queue-settings.ts";
import { keysOf } from "../../option-keys.ts";
import type { Path } from "../../redact.ts";
import { versionWire } from "../../registry/registered-schema.ts";
import { type Json, toJsonText, validate } from "../../schema.ts";
import { checkInstant, type Duration, type Instant, type InstantInput } from "../../time.ts";
import type { Transaction } from "../../transaction.ts";
import { unstartedImage } from "../decide/unstarted-image.ts";
import { joinRedact, parseRedact, pathsWithin, type RedactPath } from "../documents/redaction.ts";
import type { Sealing } from "../documents/sealed.ts";
import { refuseInternalQueue } from "../internal-queue.ts";
import {
  type Fence,
  type JobId,
  type JobImage,
  type JobOptions,
  type PolicySettings,
  rankOf,
} from "../job.ts";
import {
  assertDefinition,
  checkPriority,
  checkQueue,
  type JobDefinition,
  refuseAlone,
} from "../job-definition.ts";
import { waitingWake } from "../policy/deadlines.ts";
import {
  type PolicyOptions,
  parseSettings,
  resolveField,
  resolveFields,
  type SettingsBySource,
  saysAnything,
} from "../policy/policy.ts";
import { fixBudgets, type StoredBudgets, startOf } from "./budgets.ts";
import { checkGivenId } from "./given-id.ts";
import { copyMeta, metaOf } from "./job-meta.ts";
import {
  isWhileAlive,
  parseUnique,
  refuseDemanding,
  type UniqueOptions,
  type UniqueRule,
  uniqueKeyOf,
} from "./unique-key.ts";

/** Options of one enqueue, in addition to the definition. */
export interface EnqueueOptions extends PolicyOptions {
  /** A UUID that the caller chooses. Enqueueing it again returns the existing job as a duplicate. */
  readonly id?: string;
  readonly queue?: string;
  readonly priority?: number;
  /** Start no earlier than this long from now. */
  readonly delay?: Duration;
  /** Start no earlier than this instant. A past one means now. */
  readonly at?: InstantInput;
  /** The `wait` limit as an instant. The earlier of the two applies. */
  readonly expiresAt?: InstantInput;
  readonly meta?: { readonly [key: string]: Json };
  /** The limit of this job, instead of its definition's; `"none"` for none. */
  readonly limit?: LimitOptions | "none";
  /** Its key in a fair queue, instead of what its definition and its queue say: `"customer-7"`. */
  readonly fairKey?: string;
  /** Which jobs count as the same, instead of what the definition says; false for none. */
  readonly unique?: UniqueOptions | false;
  /** What people must not see of this job, besides what its definition says. */
  readonly redact?: readonly RedactPath[];
  /** Do not inherit the deadline of the job that enqueues this one (SEMANTICS 4.7). */
  readonly detach?: boolean;
  /**
   * Your open transaction on the same database: of `pg`, an ORM, or SQLite. The job exists if and only if it commits.
   */
  readonly tx?: Transaction;
}

/** The job, and whether its id or unique key was already known. */
export interface EnqueuedJob {
  readonly id: JobId;
  readonly duplicate: boolean;
}

/** A job as a store receives it. */
export interface NewJob {
  readonly id: JobId;
  /** The id was generated here, so no store has to check whether it is known. */
  readonly hasNewId: boolean;
  /**
   * The initial fence, lower than that of the first claim; 0 if left out. For an id that may have been used before,
   * it has random bits, so that a decision on a deleted job never writes a later job of the same id.
   */
  readonly fence?: Fence;
  readonly queue: string;
  readonly type: string;
  readonly priority: number;
  readonly createdAt: Instant;
  readonly image: JobImage;
  readonly payload: string;
  readonly options: JobOptions | null;
  /** How many countdowns a pending job waits for. */
  readonly needs?: number;
  readonly workflow?: string;
  readonly limitKey?: string;
  /** Its key in a fair queue; empty for a job without one there. */
  readonly fairKey?: string;
  /** A second live job with this key is refused. */
  readonly uniqueKey?: string;
  /** The event to record if the job is created. */
  readonly records?: NewEvent;
}

/** What the engine adds to a call: the time, an id, the less specific sources, and the job that enqueues. */
export interface EnqueueContext {
  readonly now: Instant;
  /** What `delay`, `wait` and `total` count from: the latest possible time (SEMANTICS 3.10). Default `now`. */
  readonly anchor?: Instant;
  readonly nextId: IdSource;
  /** Makes unique keys of any length short. It is passed in because core imports nothing from Node. */
  readonly hash: (text: string) => string;
  /** Encrypts the payload of each job, and hashes its unique key with a secret. Left out: neither. */
  readonly sealing?: Pick<Sealing, "seal" | "hash"> | undefined;
  readonly queueSettings?: (queue: string) => StoredQueue | undefined;
  readonly engineSettings?: PolicySettings | undefined;
  readonly parent?: { readonly id: JobId; readonly totalAt: Instant | null } | undefined;
  /** The tenant of the job, written as `meta.tenant_id`. */
  readonly tenant?: string | undefined;
  readonly documentLimit?: number;
  /** The engine makes a job of its own, which may be in an internal queue. */
  readonly isInternal?: true;
  /**
   * Only the wire protocol sets these: whether the job waits to be activated, its visibility timeout, and fields to
   * return.
   */
  readonly isPending?: boolean | undefined;
  readonly visibility?: number | undefined;
  readonly wire?: JobOptions["wire"] | undefined;
  /** Whether the job is a step of a workflow. */
  readonly isStep?: boolean;
  /** The caller waits for its result. */
  readonly isRequested?: boolean;
  /** The fields that events of jobs of this type and queue share. Left out while recording is off. */
  readonly sharedFieldsOf?: ((name: string, type: string, queue: string) => Json) | undefined;
}

export const ENQUEUE_KEYS = keysOf<EnqueueOptions>({
  id: true,
  queue: true,
  priority: true,
  delay: true,
  at: true,
  expiresAt: true,
  meta: true,
  unique: true,
  detach: true,
  redact: true,
  limit: true,
  fairKey: true,
  timeouts: true,
  retry: true,
  retention: true,
  tx: true,
});

/** A checked enqueue that many payloads can share: everything except the id and the payload. */
export interface JobTemplate {
  readonly id: JobId | undefined;
  readonly queue: string;
  readonly type: string;
  readonly priority: number;
  readonly createdAt: Instant;
  readonly image: JobImage;
  readonly options: JobOptions | null;
  /** The limit key, or the function that computes it. */
  readonly key?: KeyedLimit["key"];
  readonly needs?: number;
  /** Its queue is in one home. Left out in a store with one home. */
  readonly isStrict?: boolean;
  /** The fair key, or the function that computes it. */
  readonly fair?: FairKeySource;
  /** The fields that the events of its jobs share; undefined while recording is off. */
  readonly sharedFields: Json | undefined;
  readonly unique: UniqueRule | undefined;
  readonly hash: EnqueueContext["hash"];
  readonly sealing: EnqueueContext["sealing"];
}

/** The last template of each definition that was used without options, and the sources it was resolved from. */
const lastTemplates = new WeakMap<
  object,
  {
    readonly queueSettings: PolicySettings | undefined;
    readonly engineSettings: PolicySettings | undefined;
    readonly sharedFieldsOf: EnqueueContext["sharedFieldsOf"];
    readonly anchor: Instant;
    readonly tenant: string | undefined;
    readonly template: JobTemplate;
  }
>();

/**
 * Checks all options of an enqueue before anything is stored (SEMANTICS 1.1, 1.2). Enqueues without options within
 * one millisecond share a template: it would come out the same, and stores write the jobs of one template together.
 */
export function prepareJob<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  options: EnqueueOptions | undefined,
  context: EnqueueContext,
): JobTemplate {
  assertDefinition(definition, "definition");
  if (definition.parents !== undefined && context.isStep !== true) refuseAlone(definition);
  const {
    parent,
    isPending,
    visibility,
    wire,
    engineSettings,
    sharedFieldsOf,
    tenant,
    anchor = context.now,
  } = context;
  if (options !== undefined || parent || isPending || visibility !== undefined || wire)
    return newTemplate(definition, options ?? {}, context);
  const queueSettings = context.queueSettings?.(definition.queue);
  const last = lastTemplates.get(definition);
  const isSame =
    last?.template.createdAt === context.now &&
    (last.anchor === anchor || !hasBudgets(last.template)) &&
    last.queueSettings === queueSettings &&
    last.engineSettings === engineSettings &&
    last.tenant === tenant &&
    last.sharedFieldsOf === sharedFieldsOf &&
    last.template.sealing === context.sealing;
  if (isSame) return last.template;
  const template = newTemplate(definition, {}, context);
  lastTemplates.set(definition, { queueSettings, engineSettings, sharedFieldsOf, anchor, tenant, template });
  return template;
}

function hasBudgets({ image }: JobTemplate): boolean {
  return image.waitAt !== null || image.totalAt !== null;
}

function newTemplate<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  said: EnqueueOptions,
  around: EnqueueContext,
): JobTemplate {
  const context = contextOf(definition, around);
  refuseUnknownKeys(said, "options", ENQUEUE_KEYS);
  if (said.detach !== undefined && typeof said.detach !== "boolean") {
    throw refuse("invalid_option", "options.detach", said.detach, "write true or false");
  }
  const { now, anchor = now } = context;
  checkInstant(now, "now");
  const enqueueSettings = parseSettings(said, "options");
  const queue = said.queue === undefined ? definition.queue : checkQueue(said.queue, "options.queue");
  if (!context.isInternal) refuseInternalQueue(queue, said.queue === undefined ? "queue" : "options.queue");
  const priority =
    said.priority === undefined ? definition.priority : checkPriority(said.priority, "options.priority");
  const settings: SettingsBySource = {
    enqueue: enqueueSettings,
    definition: definition.settings,
    queue: context.queueSettings?.(queue),
    engine: context.engineSettings,
  };
  const dueAt = startOf(said, now, anchor);
  const unique = said.unique === undefined ? definition.unique : uniqueOf(said.unique, definition.unique);
  if (unique?.pace) refusePaced(said, context, unique.pace.kind);
  const budgets = fixBudgets(said, settings, context, dueAt);
  const keyed = limitFor(said.limit, definition.limit, queue, context.queueSettings?.(queue)?.rate);
  const state = context.isPending ? "pending" : dueAt > now ? "scheduled" : keyed ? "pending" : "available";
  const rank = rankOf(priority, dueAt);
  const heartbeat = saysAnything(settings, "timeouts")
    ? resolveField<number | null>(settings, (settings) => settings.timeouts?.heartbeat, null).value
    : null;
  const { waitAt, totalAt } = budgets;
  const limitKey = keyed && { key: keyed.key, isSaid: said.limit !== undefined };
  const isStrict = isInOneHome(context, queue, limitKey, unique);
  const wake = waitingWake({ state, rank, waitAt, totalAt }, keyed?.limit);
  return {
    id: said.id === undefined ? undefined : checkGivenId(said.id),
    queue,
    type: definition.type,
    priority,
    createdAt: now,
    image: unstartedImage(
      { state, rank, attempt: 0, returns: 0, expiredClaims: 0, waitAt, totalAt, heartbeat },
      // The sweep looks at a job behind a limit at once, in case the process that enqueues it dies before it admits it.
      keyed && state === "pending" && !context.isPending ? { ...wake, wakeAt: now } : wake,
    ),
    options: withRest(
      storedOptions(said, enqueueSettings, settings, budgets.stored, context),
      keyed,
      said.redact === undefined
        ? definition.redact
        : joinRedact(definition.redact, parseRedact(said.redact, "options.redact")),
    ),
    sharedFields: context.sharedFieldsOf?.(
      state === "scheduled" ? "job.scheduled" : "job.enqueued",
      definition.type,
      queue,
    ),
    unique,
    hash: context.sealing?.hash ?? context.hash,
    sealing: context.sealing,
    ...(isStrict && { isStrict }),
    ...(keyed && { key: keyed.key }),
    ...fairSource(said, definition, context.queueSettings?.(queue)?.fair),
    // Its limit must not admit it before it is activated.
    ...(keyed && context.isPending && { needs: 1 }),
  };
}

/** Adds what the definition says: its version on the wire, and whether callers ask for its results. */
function contextOf(
  { version, result }: Pick<JobDefinition<unknown>, "version" | "result">,
  context: EnqueueContext,
): EnqueueContext {
  const wire = context.wire ?? versionWire(version);
  if (wire === undefined && result === undefined) return context;
  return { ...context, wire, isRequested: context.isRequested === true || result !== undefined };
}

function withRest(
  options: JobOptions | null,
  keyed: KeyedLimit | undefined,
  redact: readonly Path[],
): JobOptions | null {
  if (!keyed && redact.length === 0) return options;
  return { ...options, ...(keyed && { limit: keyed.limit }), ...(redact.length > 0 && { redact }) };
}

/** Jobs with and without a period or states do not see each other, so one definition must not mix them. */
function uniqueOf(said: UniqueOptions | false, defined: UniqueRule | undefined): UniqueRule | undefined {
  if (said === false) return undefined;
  const rule = parseUnique(said, "options.unique");
  if (!defined || isWhileAlive(rule) === isWhileAlive(defined)) return rule;
  const fix =
    "the definition and the call must both name a period or states, or neither: otherwise their jobs do not see each other";
  throw refuse("invalid_option", "options.unique", said, fix);
}

/** Such a job gets its start from its key. */
function refusePaced(said: EnqueueOptions, { isPending }: EnqueueContext, kind: string): void {
  for (const name of ["delay", "at"] as const)
    if (said[name] !== undefined)
      throw refuse(
        "invalid_option",
        `options.${name}`,
        said[name],
        `leave it out: ${kind} says when it starts`,
      );
  if (isPending)
    throw refuse("invalid_option", "options.pending", true, `leave it out: ${kind} says when it starts`);
}

/** Stores only what neither the row nor a worker's definition says. Most jobs store nothing. */
function storedOptions(
  said: EnqueueOptions,
  enqueue: PolicySettings,
  settings: SettingsBySource,
  budgets: StoredBudgets,
  context: EnqueueContext,
): JobOptions | null {
  if (!saysAnything(settings, "retry") && !saysAnything(settings, "retention")) {
    const stored = { ...plainOptions(said, enqueue, context), ...budgets };
    return isEmpty(stored) ? null : stored;
  }
  const { onExhausted, retention } = resolveFields(settings);
  const { completed, discarded, cancelled, deadLetter } = retention;
  const isRetained = [completed, discarded, cancelled, deadLetter].some(
    ({ source }) => source !== "built-in",
  );
  // A quick job with retention 0 would be gone before a caller could ask for its result.
  const isKept = context.isRequested && [completed, discarded, cancelled].some(({ value }) => value === 0);
  const stored: JobOptions = {
    ...plainOptions(said, enqueue, context),
    ...budgets,
    ...(onExhausted.value !== "discard" && { onExhausted: onExhausted.value }),
    ...(isRetained && {
      retention: {
        completed: completed.value,
        discarded: discarded.value,
        cancelled: cancelled.value,
        ...(deadLetter.value !== null && { deadLetter: deadLetter.value }),
      },
    }),
    ...(isKept && { awaited: true }),
  };
  return isEmpty(stored) ? null : stored;
}

function plainOptions(
  said: EnqueueOptions,
  enqueue: PolicySettings,
  { visibility, wire, tenant }: EnqueueContext,
): JobOptions {
  const meta = said.meta === undefined ? undefined : copyMeta(said.meta);
  return {
    ...(!isEmpty(enqueue) && { settings: enqueue }),
    ...(tenant !== undefined ? { meta: metaOf(tenant, meta) } : meta && { meta }),
    ...(visibility !== undefined && { visibility }),
    ...(wire !== undefined && { wire }),
  };
}

export function isEmpty(value: object): boolean {
  for (const _name in value) return false;
  return true;
}

/**
 * Checks a payload against its schema and as JSON. The stored text is the caller's input. The worker parses it again.
 */
export function preparePayload<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  payload: NoInfer<Input>,
  limit?: number,
): string | Promise<string> {
  const value = payload === undefined ? null : payload;
  if (!definition.payload) return toJsonText(value, "payload", limit);
  // The worker sees null for a payload that was left out, so the schema must accept null.
  const checked = validate(
    definition.payload,
    value,
    "payload",
    "invalid_payload",
    pathsWithin(definition.redact, "payload"),
  );
  if (checked instanceof Promise) return checked.then(() => toJsonText(value, "payload", limit));
  return toJsonText(value, "payload", limit);
}

/**
 * Makes one job from a template. Its unique key applies while it lives; a rule that asks for more is refused. The
 * limit key may be a function of the payload: of `given`, or of the stored text.
 */
export function stamp(template: JobTemplate, payload: string, nextId: IdSource, given?: unknown): NewJob {
  if (template.unique !== undefined) refuseDemanding(template.unique);
  return stampAny(template, payload, nextId, given);
}

/** Makes one job from a template, for a caller that enforces its unique rule itself. */
export function stampAny(template: JobTemplate, payload: string, nextId: IdSource, given?: unknown): NewJob {
  const id = nextId.namePrefix === undefined ? nextId : placedId(template, payload, nextId, given);
  const stamped = recordedJob(template, payload, id);
  const { key, needs, fair } = template;
  if (key === undefined && fair === undefined) return stamped;
  const isRead = given === undefined && (typeof key === "function" || typeof fair === "function");
  const input = isRead ? JSON.parse(payload) : given;
  const job = fair === undefined ? stamped : { ...stamped, fairKey: fairKeyFrom(fair, input) };
  if (key === undefined) return job;
  const limitKey = typeof key === "string" ? key : limitKeyFrom(key, input);
  return needs === undefined ? { ...job, limitKey } : { ...job, limitKey, needs };
}

function recordedJob(template: JobTemplate, payload: string, nextId: () => JobId): NewJob {
  const id = template.id ?? nextId();
  const job: NewJob = {
    id,
    hasNewId: template.id === undefined,
    queue: template.queue,
    type: template.type,
    priority: template.priority,
    createdAt: template.createdAt,
    image: template.image,
    payload: template.sealing ? template.sealing.seal(payload, id, "payload") : payload,
    options: template.options,
  };
  const recorded =
    template.sharedFields === undefined
      ? job
      : {
          ...job,
          records: { event: template.sharedFields, of: { job: job.id, at: job.createdAt, attempt: 0 } },
        };
  if (template.unique === undefined) return recorded;
  const { type, queue, options } = job;
  return {
    ...recorded,
    uniqueKey: uniqueKeyOf(template.unique, { type, queue, payload, meta: options?.meta }, template.hash),
  };
}
