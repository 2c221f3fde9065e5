import { checkCount, checkFlag, refuse, refuseUnknownKeys } from "../errors.ts";
import { fitsFilter } from "../event/journal-event.ts";
import type { StoredEvent } from "../event/stored-event.ts";
import { isObject } from "../is-object.ts";
import { checkQueue, checkType } from "../job/job-definition.ts";
import { keysOf } from "../option-keys.ts";
import { type Json, toJsonText } from "../schema.ts";
import { type Duration, type Instant, parseDuration } from "../time.ts";
import { type CallHeaders, parseCallHeaders } from "./call-headers.ts";
import { type AllowList, checkEndpoint } from "./endpoint.ts";

/** What a subscription says. Fields that are left out keep their default, or in an update their value. */
export interface WebhookOptions {
  /** Where events are sent: an https URL of a public host, unless the server allows others. */
  readonly url?: string;
  /** Names of events. `job.*` means all that begin with `job.`, and `*` all. */
  readonly events?: readonly string[];
  /** Only events of these queues. Default: all. */
  readonly queues?: readonly string[] | null;
  /** Only events of jobs of these types. Default: all. */
  readonly types?: readonly string[] | null;
  /** Sends the events of one job one after the other, in the order of the journal. Default false. */
  readonly ordered?: boolean;
  /** Sends up to `size` events with one call, and waits for up to `within` until there are as many. Default: one each. */
  readonly batch?: { readonly size: number; readonly within?: Duration } | null;
  /** How long a call may take, from 1 to 60 s. Default 30 s. */
  readonly timeout?: Duration;
  /** How many calls a delivery makes, and the delays between them. Default 8 within 41 hours. */
  readonly retry?: { readonly attempts?: number; readonly delays?: readonly Duration[] } | null;
  /** False sends nothing until it is true again. Events of the meantime are not sent later. Default true. */
  readonly active?: boolean;
  /** Yours: a description, an owner. At most 4 kB. */
  readonly metadata?: { readonly [key: string]: Json } | null;
  /**
   * Headers of each call, such as `Authorization`. Nobody can read their values. A URL of another origin drops them,
   * unless the same call names them again.
   */
  readonly headers?: CallHeaders | null;
}

/** A subscription as it is stored. The secret is in a record of its own. */
export interface Subscription {
  readonly url: string;
  readonly events: readonly string[];
  readonly queues: readonly string[] | null;
  readonly types: readonly string[] | null;
  readonly ordered: boolean;
  readonly batch: { readonly size: number; readonly within: number };
  readonly timeout: number;
  readonly retry: { readonly attempts: number; readonly delays: readonly number[] };
  readonly active: boolean;
  readonly metadata: { readonly [key: string]: Json };
  /** Left out in subscriptions that never had any. */
  readonly headers?: CallHeaders;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

export const WEBHOOK_KEYS = keysOf<WebhookOptions>({
  url: true,
  events: true,
  queues: true,
  types: true,
  ordered: true,
  batch: true,
  timeout: true,
  retry: true,
  active: true,
  metadata: true,
  headers: true,
});

const MOST_EVENTS = 50;
const MOST_NAMES = 100;
export const MOST_BATCHED = 100;
const LONGEST_BATCH = 60_000;
const METADATA_LIMIT = 4_096;
const EVENT = /^(\*|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*)?)$/;
const MOST_ATTEMPTS = 20;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The schedule that the specification of webhooks recommends: 8 calls within 41 hours. */
const DELAYS = [30_000, 2 * MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR];
const DEFAULTS = {
  queues: null,
  types: null,
  ordered: false,
  batch: { size: 1, within: 0 },
  timeout: 30_000,
  retry: { attempts: DELAYS.length + 1, delays: DELAYS },
  active: true,
  metadata: {},
} as const;

/** The subscription that these options make of `before`, or of nothing. */
export function parseSubscription(
  options: WebhookOptions,
  before: Subscription | null,
  { allowed, now }: { readonly allowed: AllowList; readonly now: Instant },
): Subscription {
  refuseUnknownKeys(options, "", WEBHOOK_KEYS);
  const { url, events, queues, types, batch, timeout, retry, metadata } = options;
  const base = before ?? { ...DEFAULTS, url: "", events: [], createdAt: now, updatedAt: now };
  if (!before && url === undefined) throw refuse("invalid_option", "url", url, "name where to send events");
  if (!before && events === undefined)
    throw refuse("invalid_option", "events", events, 'list events such as "job.failed", or "*" for all');
  return {
    ...base,
    ...(url !== undefined && { url: checkEndpoint(url, "url", allowed) }),
    ...(events !== undefined && { events: checkEvents(events) }),
    ...(queues !== undefined && { queues: queues && names(queues, "queues", checkQueue) }),
    ...(types !== undefined && { types: types && names(types, "types", checkType) }),
    ...(options.ordered !== undefined && { ordered: checkFlag(options.ordered, "ordered") }),
    ...(batch !== undefined && { batch: batch === null ? DEFAULTS.batch : parseBatch(batch) }),
    ...(timeout !== undefined && { timeout: bounded(timeout, "timeout", 1_000, MINUTE) }),
    ...(retry !== undefined && { retry: retry === null ? DEFAULTS.retry : parseRetry(retry) }),
    ...(options.active !== undefined && { active: checkFlag(options.active, "active") }),
    ...(metadata !== undefined && { metadata: checkMetadata(metadata ?? {}) }),
    ...headersAfter(options, before),
    updatedAt: now,
  };
}

/** A URL of another origin must not get the headers of the one before: they may be the password of that one. */
function headersAfter(
  { url, headers }: WebhookOptions,
  before: Subscription | null,
): Pick<Subscription, "headers"> {
  if (headers !== undefined) return { headers: headers === null ? {} : parseCallHeaders(headers, "headers") };
  const isMoved = before && url !== undefined && new URL(url).origin !== new URL(before.url).origin;
  return isMoved ? { headers: {} } : {};
}

function checkEvents(events: unknown): readonly string[] {
  const fix = `list 1 to ${MOST_EVENTS} names such as "job.failed", "job.*" or "*"`;
  if (!Array.isArray(events) || events.length === 0 || events.length > MOST_EVENTS)
    throw refuse("invalid_option", "events", events, fix);
  for (const [index, name] of events.entries()) {
    if (typeof name !== "string" || name.length > 100 || !EVENT.test(name))
      throw refuse("invalid_option", `events[${index}]`, name, fix);
    if (isOwnEvent(name))
      throw refuse("invalid_option", `events[${index}]`, name, "events of webhooks are not sent to webhooks");
  }
  return [...new Set(events as string[])];
}

function names(
  list: unknown,
  field: string,
  check: (name: string, field: string) => string,
): readonly string[] {
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_NAMES)
    throw refuse("invalid_option", field, list, `list 1 to ${MOST_NAMES} names, or leave it out for all`);
  return [...new Set(list.map((name, index) => check(name, `${field}[${index}]`)))];
}

function bounded(value: Duration, field: string, least: number, most: number): number {
  const parsed = parseDuration(value, field, { zero: true });
  if (parsed >= least && parsed <= most) return parsed;
  throw refuse("invalid_option", field, value, `use ${least / 1_000} to ${most / 1_000} seconds`);
}

function parseBatch(batch: NonNullable<WebhookOptions["batch"]>): Subscription["batch"] {
  refuseUnknownKeys(batch, "batch", ["size", "within"]);
  const { size, within = "1s" } = batch;
  return {
    size: checkCount(size, "batch.size", MOST_BATCHED),
    within: bounded(within, "batch.within", 0, LONGEST_BATCH),
  };
}

function parseRetry(retry: NonNullable<WebhookOptions["retry"]>): Subscription["retry"] {
  refuseUnknownKeys(retry, "retry", ["attempts", "delays"]);
  const { delays } = retry;
  if (
    delays !== undefined &&
    (!Array.isArray(delays) || delays.length === 0 || delays.length > MOST_ATTEMPTS)
  )
    throw refuse("invalid_option", "retry.delays", delays, `list 1 to ${MOST_ATTEMPTS} durations`);
  const parsed = delays?.map((delay, index) => bounded(delay, `retry.delays[${index}]`, 0, 24 * HOUR));
  const attempts = retry.attempts ?? (parsed ? parsed.length + 1 : DEFAULTS.retry.attempts);
  return { attempts: checkCount(attempts, "retry.attempts", MOST_ATTEMPTS), delays: parsed ?? DELAYS };
}

function checkMetadata(metadata: unknown): { readonly [key: string]: Json } {
  if (!isObject(metadata)) throw refuse("invalid_option", "metadata", metadata, "write an object");
  return JSON.parse(toJsonText(metadata, "metadata", METADATA_LIMIT));
}

/** Events about deliveries and subscriptions. A webhook that got them would cause more of them. */
function isOwnEvent(name: string): boolean {
  return name.startsWith("webhook.");
}

/** Whether a subscription wants an event. */
export function wants({ events, queues, types }: Subscription, event: StoredEvent): boolean {
  if (isOwnEvent(event.name)) return false;
  if (queues && !(event.queue !== undefined && queues.includes(event.queue))) return false;
  if (types && !(event.type !== undefined && types.includes(event.type))) return false;
  return events.includes("*") || fitsFilter(event, { types: events });
}

/** Calls to one endpoint that run at once, and lanes of an ordered subscription. */
export const CALLS_AT_ONCE = 16;
/** Begins the limit keys of deliveries. Clients do not see them. */
const LANE_PREFIX = "curfew.webhooks ";

/**
 * The limit key of a delivery. An ordered subscription has 16 lanes, and a job is always in the same one. With batches
 * it has one, because a call has events of many jobs.
 */
export function laneOf(id: string, { ordered, batch }: Subscription, about: string): string {
  if (!ordered) return LANE_PREFIX + id;
  return `${LANE_PREFIX}${id} ${batch.size > 1 ? 0 : laneNumber(about)}`;
}

/** All limit keys that deliveries of a subscription may have. */
export function lanesOf(id: string): readonly string[] {
  const lanes = Array.from({ length: CALLS_AT_ONCE }, (_, lane) => `${LANE_PREFIX}${id} ${lane}`);
  return [LANE_PREFIX + id, ...lanes];
}

function laneNumber(text: string): number {
  let hash = 2_166_136_261;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 16_777_619);
  return (hash >>> 0) % CALLS_AT_ONCE;
}
