import { refuse, refuseUnknownKeys } from "../errors.ts";
import type { NewEvent } from "../event/new-event.ts";
import { UUID } from "../ids.ts";
import { checkLimitKey, type KeyedLimit, type LimitOptions, parseLimit } from "../limit/limit.ts";
import { keysOf } from "../option-keys.ts";
import { type Json, toJsonText, validate } from "../schema.ts";
import {
  type Duration,
  earlier,
  formatDuration,
  type Instant,
  type InstantInput,
  parseDuration,
  parseInstant,
} from "../time.ts";
import { waitingWake } from "./deadlines.ts";
import {
  type Fence,
  type JobId,
  type JobImage,
  type JobOptions,
  type PolicySettings,
  rankOf,
} from "./job.ts";
import { assertDefinition, checkPriority, checkQueue, type JobDefinition } from "./job-definition.ts";
import {
  type PolicyOptions,
  parseSettings,
  resolveBudgets,
  resolveField,
  resolveFields,
  type SettingsBySource,
  saysAnything,
} from "./policy.ts";
import {
  isWhileAlive,
  parseUnique,
  refuseDemanding,
  type UniqueOptions,
  type UniqueRule,
  uniqueKeyOf,
} from "./unique-key.ts";

/** What a single enqueue may say on top of the definition. */
export interface EnqueueOptions extends PolicyOptions {
  /** A UUID of the caller's own; enqueueing it again returns the old job as a duplicate. */
  readonly id?: string;
  readonly queue?: string;
  readonly priority?: number;
  /** Start no earlier than this long from now. */
  readonly delay?: Duration;
  /** Start no earlier than this instant; one that has passed means now. */
  readonly at?: InstantInput;
  /** The `wait` limit as an instant; the earlier of the two wins. */
  readonly expiresAt?: InstantInput;
  readonly meta?: { readonly [key: string]: Json };
  /** The limit that this job runs under, instead of its definition's; `"none"` for none. */
  readonly limit?: LimitOptions | "none";
  /** Which jobs are the same one, in the place of what the definition says; false for none. */
  readonly unique?: UniqueOptions | false;
  /** Do not inherit the deadline of the job that enqueues this one (SEMANTICS 4.7). */
  readonly detach?: boolean;
  /**
   * The caller's own transaction on the same database (a `pg` client, a better-sqlite3 handle): the job exists if and
   * only if that transaction commits.
   */
  readonly tx?: unknown;
}

/** What an enqueue answers: the job, and whether its id or unique key was known already. */
export interface EnqueuedJob {
  readonly id: JobId;
  readonly duplicate: boolean;
}

/** A job as a store takes it in. */
export interface NewJob {
  readonly id: JobId;
  /** The id was made here, so no store has to look whether it is known. */
  readonly hasNewId: boolean;
  /**
   * The fence it begins with, below the first claim's; 0 if left out. An id that may have been used before begins with
   * random bits, so that what was decided on a job that is gone never writes the one that came after it.
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
  /** Refuses a second live job with the same key. */
  readonly uniqueKey?: string;
  /** Written with the job, if it was created. */
  readonly records?: NewEvent;
}

/** What the engine adds to a call: time, an id, the less specific sources, and the job that is enqueueing. */
export interface EnqueueContext {
  readonly now: Instant;
  readonly nextId: () => JobId;
  /** Makes unique keys of any length short. It is passed in because core imports nothing from Node. */
  readonly hash: (text: string) => string;
  readonly queueSettings?: (queue: string) => PolicySettings | undefined;
  readonly engineSettings?: PolicySettings | undefined;
  readonly parent?: { readonly id: JobId; readonly totalAt: Instant | null } | undefined;
  readonly documentLimit?: number;
  /** What only a wire protocol says: the job waits to be activated, its visibility timeout, and fields to give back. */
  readonly isPending?: boolean | undefined;
  readonly visibility?: number | undefined;
  readonly wire?: JobOptions["wire"] | undefined;
  /** What jobs of this kind share in what they tell of themselves; left out while events are off. */
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
  limit: true,
  timeouts: true,
  retry: true,
  retention: true,
  tx: true,
});

/** A parsed enqueue that many payloads can share: everything but the id and the payload. */
export interface JobTemplate {
  readonly id: JobId | undefined;
  readonly queue: string;
  readonly type: string;
  readonly priority: number;
  readonly createdAt: Instant;
  readonly image: JobImage;
  readonly options: JobOptions | null;
  /** The key of its limit, or what gives it. */
  readonly key?: KeyedLimit["key"];
  readonly needs?: number;
  /** What its jobs share in what they tell; undefined while events are off. */
  readonly sharedFields: Json | undefined;
  readonly unique: UniqueRule | undefined;
  readonly hash: EnqueueContext["hash"];
}

/** The last template of a definition that was asked for without options, and the sources it was resolved from. */
const lastTemplates = new WeakMap<
  object,
  {
    readonly queueSettings: PolicySettings | undefined;
    readonly engineSettings: PolicySettings | undefined;
    readonly sharedFieldsOf: EnqueueContext["sharedFieldsOf"];
    readonly template: JobTemplate;
  }
>();

/**
 * Checks all that an enqueue says, before anything is stored (SEMANTICS 1.1, 1.2). Many jobs of one definition are
 * enqueued within a millisecond, and those that say nothing more share a template: it would come out the same, and
 * stores write jobs off one template together.
 */
export function prepareJob<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  options: EnqueueOptions | undefined,
  context: EnqueueContext,
): JobTemplate {
  assertDefinition(definition, "definition");
  const { parent, isPending, visibility, wire, engineSettings, sharedFieldsOf } = context;
  if (options !== undefined || parent || isPending || visibility !== undefined || wire)
    return newTemplate(definition, options ?? {}, context);
  const queueSettings = context.queueSettings?.(definition.queue);
  const last = lastTemplates.get(definition);
  const isSame =
    last?.template.createdAt === context.now &&
    last.queueSettings === queueSettings &&
    last.engineSettings === engineSettings &&
    last.sharedFieldsOf === sharedFieldsOf;
  if (isSame) return last.template;
  const template = newTemplate(definition, {}, context);
  lastTemplates.set(definition, {
    queueSettings: queueSettings,
    engineSettings: engineSettings,
    sharedFieldsOf: sharedFieldsOf,
    template: template,
  });
  return template;
}

function newTemplate<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  said: EnqueueOptions,
  context: EnqueueContext,
): JobTemplate {
  refuseUnknownKeys(said, "options", ENQUEUE_KEYS);
  if (said.detach !== undefined && typeof said.detach !== "boolean") {
    throw refuse("invalid_option", "options.detach", said.detach, "write true or false");
  }
  const { now } = context;
  const enqueueSettings = parseSettings(said, "options");
  const queue = said.queue === undefined ? definition.queue : checkQueue(said.queue, "options.queue");
  const priority =
    said.priority === undefined ? definition.priority : checkPriority(said.priority, "options.priority");
  const settings: SettingsBySource = {
    enqueue: enqueueSettings,
    definition: definition.settings,
    queue: context.queueSettings?.(queue),
    engine: context.engineSettings,
  };
  const dueAt = startOf(said, now);
  const budgets = fixBudgets(said, settings, now, dueAt, context.parent);
  const keyed = limitOf(definition.limit, said);
  const state = context.isPending ? "pending" : dueAt > now ? "scheduled" : keyed ? "pending" : "available";
  const rank = rankOf(priority, dueAt);
  const heartbeat = saysAnything(settings, "timeouts")
    ? resolveField<number | null>(settings, (settings) => settings.timeouts?.heartbeat, null).value
    : null;
  const { waitAt, totalAt } = budgets;
  return {
    id: said.id === undefined ? undefined : checkId(said.id),
    queue,
    type: definition.type,
    priority,
    createdAt: now,
    image: {
      state,
      ...waitingWake({ state, rank, waitAt, totalAt }, keyed?.limit),
      // A job at its limit is looked at at once, in case that whoever enqueues it does not come to let it through.
      ...(keyed && state === "pending" && !context.isPending && { wakeAt: now }),
      rank,
      attempt: 0,
      returns: 0,
      expiredClaims: 0,
      waitAt,
      totalAt,
      startedAt: null,
      softAt: null,
      hardAt: null,
      stallAt: null,
      heartbeat,
      finishedAt: null,
      pruneAt: null,
      deadLetter: false,
    },
    options: withLimit(keptOptions(said, enqueueSettings, settings, budgets.kept, context), keyed),
    sharedFields: context.sharedFieldsOf?.(
      state === "scheduled" ? "job.scheduled" : "job.enqueued",
      definition.type,
      queue,
    ),
    unique: said.unique === undefined ? definition.unique : uniqueOf(said.unique, definition.unique),
    hash: context.hash,
    ...(keyed && { key: keyed.key }),
    // What waits to be activated is not let through by its limit meanwhile.
    ...(keyed && context.isPending && { needs: 1 }),
  };
}

function limitOf(defined: KeyedLimit | undefined, { limit }: EnqueueOptions): KeyedLimit | undefined {
  if (limit === undefined) return defined;
  return limit === "none" ? undefined : parseLimit(limit, "options.limit");
}

function withLimit(options: JobOptions | null, keyed: KeyedLimit | undefined): JobOptions | null {
  return keyed ? { ...options, limit: keyed.limit } : options;
}

/** Jobs whose rules are kept in different ways do not see each other, so one definition must not mix them. */
function uniqueOf(said: UniqueOptions | false, defined: UniqueRule | undefined): UniqueRule | undefined {
  if (said === false) return undefined;
  const rule = parseUnique(said, "options.unique");
  if (!defined || isWhileAlive(rule) === isWhileAlive(defined)) return rule;
  const fix =
    "the definition and the call must both name a period or states, or neither: otherwise their jobs do not see each other";
  throw refuse("invalid_option", "options.unique", said, fix);
}

function checkId(id: string): JobId {
  if (typeof id !== "string" || !UUID.test(id)) {
    throw refuse("invalid_option", "options.id", id, "use a lower-case UUID, or leave it out");
  }
  return id;
}

/** When a job that is enqueued now is due. */
export function startOf(said: Pick<EnqueueOptions, "delay" | "at">, now: Instant): Instant {
  if (said.delay !== undefined && said.at !== undefined) {
    throw refuse("invalid_option", "options.at", said.at, "write either delay or at, not both");
  }
  if (said.delay !== undefined) return now + parseDuration(said.delay, "options.delay", { zero: true });
  return said.at === undefined ? now : Math.max(now, parseInstant(said.at, "options.at"));
}

const NO_BUDGETS = { waitAt: null, totalAt: null, kept: {} };

type KeptBudgets = Pick<
  JobOptions,
  "wait" | "waitFrom" | "total" | "totalFrom" | "expiresAt" | "inheritedFrom"
>;

/** `wait` and `total` become instants here and stay them (SEMANTICS 2); an inherited deadline cuts and never refuses (4.7). */
function fixBudgets(
  said: EnqueueOptions,
  settings: SettingsBySource,
  now: Instant,
  dueAt: Instant,
  parent: EnqueueContext["parent"],
): { waitAt: Instant | null; totalAt: Instant | null; kept: KeptBudgets } {
  if (said.expiresAt === undefined && !parent && !saysAnything(settings, "timeouts")) return NO_BUDGETS;
  const { wait, total } = resolveBudgets(settings);
  const expiresAt = said.expiresAt === undefined ? null : parseInstant(said.expiresAt, "options.expiresAt");
  const waitAt = earlier(wait.value === null ? null : now + wait.value, expiresAt);
  const ownTotalAt = total.value === null ? null : now + total.value;
  refuseNeverRuns(waitAt, dueAt, now, waitAt === expiresAt ? "expiresAt" : "timeouts.wait");
  refuseNeverRuns(ownTotalAt, dueAt, now, "timeouts.total");
  const inherited =
    said.detach || parent === undefined || parent.totalAt === null || dueAt >= parent.totalAt
      ? null
      : parent.totalAt;
  const isCut = inherited !== null && (ownTotalAt === null || inherited < ownTotalAt);
  return {
    waitAt,
    totalAt: isCut ? inherited : ownTotalAt,
    kept: {
      ...(wait.value !== null && { wait: wait.value, waitFrom: wait.source }),
      ...(total.value !== null && { total: total.value, totalFrom: total.source }),
      ...(expiresAt !== null && { expiresAt }),
      ...(isCut && parent && { inheritedFrom: parent.id }),
    },
  };
}

function refuseNeverRuns(endsAt: Instant | null, dueAt: Instant, now: Instant, field: string): void {
  if (endsAt === null || endsAt > dueAt) return;
  const start =
    dueAt > now ? `options.delay/at starts it ${formatDuration(dueAt - now)} from now` : "it starts now";
  throw refuse(
    "never_runs",
    field,
    // An instant is named as one: a past one has no length that anybody wrote.
    field === "expiresAt" ? new Date(endsAt).toISOString() : formatDuration(endsAt - now),
    `${start}: lengthen ${field} or start it earlier`,
  );
}

/** Only what the row cannot tell and no worker's definition will: most jobs keep nothing. */
function keptOptions(
  said: EnqueueOptions,
  enqueue: PolicySettings,
  settings: SettingsBySource,
  budgets: KeptBudgets,
  context: EnqueueContext,
): JobOptions | null {
  if (!saysAnything(settings, "retry") && !saysAnything(settings, "retention")) {
    const kept = { ...plainOptions(said, enqueue, context), ...budgets };
    return isEmpty(kept) ? null : kept;
  }
  const { onExhausted, retention } = resolveFields(settings);
  const isRetained = [
    retention.completed,
    retention.discarded,
    retention.cancelled,
    retention.deadLetter,
  ].some((field) => field.source !== "built-in");
  const kept: JobOptions = {
    ...plainOptions(said, enqueue, context),
    ...budgets,
    ...(onExhausted.value !== "discard" && { onExhausted: onExhausted.value }),
    ...(isRetained && {
      retention: {
        completed: retention.completed.value,
        discarded: retention.discarded.value,
        cancelled: retention.cancelled.value,
        ...(retention.deadLetter.value !== null && { deadLetter: retention.deadLetter.value }),
      },
    }),
  };
  return isEmpty(kept) ? null : kept;
}

function plainOptions(
  said: EnqueueOptions,
  enqueue: PolicySettings,
  { visibility, wire }: EnqueueContext,
): JobOptions {
  return {
    ...(!isEmpty(enqueue) && { settings: enqueue }),
    ...(said.meta !== undefined && { meta: copyMeta(said.meta) }),
    ...(visibility !== undefined && { visibility }),
    ...(wire !== undefined && { wire }),
  };
}

export function isEmpty(value: object): boolean {
  for (const _name in value) return false;
  return true;
}

function copyMeta(meta: EnqueueOptions["meta"]): NonNullable<EnqueueOptions["meta"]> {
  if (typeof meta !== "object" || meta === null || Array.isArray(meta)) {
    throw refuse("invalid_option", "options.meta", meta, "write an object");
  }
  return JSON.parse(toJsonText(meta, "options.meta"));
}

/** Checks a payload against its schema and as JSON. What is kept is the caller's input; the worker parses it again. */
export function preparePayload<Input>(
  definition: JobDefinition<Input, unknown, unknown>,
  payload: NoInfer<Input>,
  limit?: number,
): string | Promise<string> {
  const value = payload === undefined ? null : payload;
  if (!definition.payload) return toJsonText(value, "payload", limit);
  // The worker will see null where the payload was left out, so that is what the schema must accept.
  const checked = validate(definition.payload, value, "payload", "invalid_payload");
  if (checked instanceof Promise) return checked.then(() => toJsonText(value, "payload", limit));
  return toJsonText(value, "payload", limit);
}

/**
 * One job off a template. A unique one holds its key while it lives; where more is asked for, it is refused. The key of a
 * limit may be a function of the payload as it was given, or as it is kept.
 */
export function stamp(template: JobTemplate, payload: string, nextId: () => JobId, given?: unknown): NewJob {
  if (template.unique !== undefined) refuseDemanding(template.unique);
  return stampAny(template, payload, nextId, given);
}

/** One job off a template, for those who keep its rule about uniqueness themselves. */
export function stampAny(
  template: JobTemplate,
  payload: string,
  nextId: () => JobId,
  given?: unknown,
): NewJob {
  const job = recordedJob(template, payload, nextId);
  const { key, needs } = template;
  if (key === undefined) return job;
  const limitKey =
    typeof key === "string" ? key : keyFrom(key, given === undefined ? JSON.parse(payload) : given);
  return needs === undefined ? { ...job, limitKey } : { ...job, limitKey, needs };
}

function keyFrom(key: (payload: never) => string, payload: unknown): string {
  return checkLimitKey(key(payload as never), "limit.key(payload)");
}

function recordedJob(template: JobTemplate, payload: string, nextId: () => JobId): NewJob {
  const job: NewJob = {
    id: template.id ?? nextId(),
    hasNewId: template.id === undefined,
    queue: template.queue,
    type: template.type,
    priority: template.priority,
    createdAt: template.createdAt,
    image: template.image,
    payload,
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
