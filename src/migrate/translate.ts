import { parseUnique, uniqueKeyOf } from "../core/job/enqueue/unique-key.ts";
import type { ErrorRecord, JobOptions, PolicySettings } from "../core/job/job.ts";
import { checkQueue, checkType, DEFAULT_QUEUE } from "../core/job/job-definition.ts";
import type { JobLine } from "../core/job/transfer/job-line.ts";
import { INSTANT_LIMIT, type Instant } from "../core/time.ts";
import { sha256 } from "../engine/runtime/sha256.ts";
import type { Change, Note, Refusal } from "./report.ts";

/** What the user said about names. */
export interface NameRules {
  /** New names for types, by the name in the old system. */
  readonly renames: ReadonlyMap<string, string>;
  /** The queue of all jobs; undefined keeps the queues apart. */
  readonly into: string | undefined;
}

/** Thrown by `refused`, and caught by `applyRules`. */
class Refused extends Error {
  readonly note: Note<Refusal>;

  constructor(reason: Refusal, detail: string) {
    super(detail);
    this.note = { reason, detail };
  }
}

export function refused(reason: Refusal, detail: string): never {
  throw new Refused(reason, detail);
}

/** What rules made of something in the old system, and how it differs; or why they made nothing. */
export type Ruled<Value> =
  | { readonly value: Value; readonly changes: readonly Note<Change>[] }
  | { readonly refused: Note<Refusal> };

/** Runs rules, which may call `refused`. */
export function applyRules<Value>(make: (changes: Note<Change>[]) => Value): Ruled<Value> {
  const changes: Note<Change>[] = [];
  try {
    return { value: make(changes), changes };
  } catch (error) {
    if (error instanceof Refused) return { refused: error.note };
    throw error;
  }
}

const quoted = (text: string) => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

/** The type for a name of the old system: as it is, as the user renamed it, or written as curfew writes types. */
export function typeOf(name: string, { renames }: NameRules, changes: Note<Change>[]): string {
  const given = renames.get(name);
  if (given !== undefined) return given;
  return fitName(name, (text) => checkType(text, "type"), /[^a-z0-9._-]+/g, changes);
}

export function queueOf(name: string, { into }: NameRules, changes: Note<Change>[]): string {
  if (into !== undefined) return into;
  return fitName(name, (text) => checkQueue(text, "queue"), /[^a-z0-9.-]+/g, changes);
}

export const defaultQueue = ({ into }: NameRules) => into ?? DEFAULT_QUEUE;

function fitName(
  name: string,
  check: (text: string) => string,
  strange: RegExp,
  changes: Note<Change>[],
): string {
  if (fits(name, check)) return name;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check looks for control characters.
  if (/[\u0000-\u001f\u007f]/.test(name) || !name.isWellFormed()) refused("name", quoted(name));
  const made = name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .toLowerCase()
    .replaceAll("/", ".")
    .replaceAll(":", ".")
    .replace(strange, "-")
    .replace(/^[-._]+|[-._]+$/g, "");
  if (!fits(made, check)) refused("name", quoted(name));
  changes.push({ reason: "renamed", detail: `${quoted(name)} -> ${quoted(made)}` });
  return made;
}

function fits(name: string, check: (text: string) => string): boolean {
  try {
    check(name);
    return true;
  } catch {
    return false;
  }
}

/** The nearest priority that curfew has: from -100 (last) to 100 (first). */
export function priorityOf(value: number, changes: Note<Change>[]): number {
  const whole = Math.round(value);
  const cut = Math.min(100, Math.max(-100, whole));
  if (cut !== whole) changes.push({ reason: "priority", detail: `${value} -> ${cut}` });
  return cut === 0 ? 0 : cut;
}

/** The unique key that an enqueue with `unique: { key }` has. */
export function uniqueKey(type: string, key: string): string {
  if (key === "" || key.length > 1_000) refused("invalid", `unique key ${quoted(key)}`);
  const job = { type, queue: DEFAULT_QUEUE, payload: "null", meta: undefined };
  return uniqueKeyOf(parseUnique({ key }, "unique"), job, sha256);
}

const MOST_LIMIT_KEY = 512;

export function limitKey(key: string): string {
  if (key === "" || key.length > MOST_LIMIT_KEY || !key.isWellFormed() || key.includes("\0"))
    refused("invalid", `limit key ${quoted(key)}`);
  return key;
}

/** Where a job comes from. All of it is part of its id. */
export interface Origin {
  readonly engine: string;
  /** The schema or the prefix of keys. */
  readonly scope: string;
  readonly queue: string;
  readonly id: string;
  /** When it was created, as exact as the old system knows it: an id that is used again later is another job. */
  readonly created: string;
  readonly createdAt: Instant;
  /** Its position among jobs that were created in the same millisecond, if the old system has one. */
  readonly order?: number;
}

const ORDER_LIMIT = 2 ** 26;

/**
 * The id of a job in curfew: always the same for the same job, so a repeated import finds it. It begins with the time
 * of creation and the order, as generated ids do, so jobs that are due at the same time keep their order.
 */
export function idOf({ engine, scope, queue, id, created, createdAt, order }: Origin): string {
  const hash = sha256(JSON.stringify([engine, scope, queue, id, created]));
  const time = createdAt.toString(16).padStart(12, "0").slice(-12);
  const place = order === undefined ? Number.parseInt(hash.slice(12, 19), 16) : order;
  const bits = ((place % ORDER_LIMIT) + ORDER_LIMIT) % ORDER_LIMIT;
  const high = (bits >>> 14).toString(16).padStart(3, "0");
  const low = (0x8000 | (bits & 0x3fff)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${high}-${low}-${hash.slice(0, 12)}`;
}

/** A name for people and handlers: `meta.importedFrom`. Not every store takes control characters. */
function originText({ engine, queue, id }: Origin): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose.
  return `${engine}:${queue}:${id}`.replace(/[\u0000-\u001f]/g, " ").toWellFormed();
}

/** What the rules of an engine found out about a job. */
export interface ForeignJob {
  readonly origin: Origin;
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly payload: string;
  readonly dueAt: Instant;
  /** Attempts that were made. */
  readonly attempts: number;
  readonly settings: PolicySettings;
  /** Ends the job if it has not started by then. */
  readonly expiresAt?: Instant | undefined;
  readonly uniqueKey?: string | undefined;
  readonly limit?: { readonly key: string; readonly strict?: true } | undefined;
  readonly error?: { readonly message: string; readonly stack?: string; readonly at: Instant } | undefined;
  /** Set for a job that failed for good. */
  readonly deadAt?: Instant | undefined;
}

const isInstant = (at: number) => Number.isInteger(at) && at >= 0 && at < INSTANT_LIMIT;
const iso = (at: Instant) => new Date(at).toISOString();
const LONGEST_MESSAGE = 2_000;

/** The line of a job, as an export of curfew would have written it. */
export function lineFor(job: ForeignJob, now: Instant): JobLine {
  const { origin, dueAt, attempts, expiresAt, deadAt, error, limit } = job;
  // PostgreSQL has the timestamp `infinity`, and Redis may hold anything.
  for (const at of [origin.createdAt, dueAt, deadAt ?? 0, error?.at ?? 0])
    if (!isInstant(at)) refused("invalid", `${at} is not a time`);
  const isDead = deadAt !== undefined;
  const hasWait = !isDead && attempts === 0 && expiresAt !== undefined && isInstant(expiresAt);
  const options: JobOptions = {
    settings: job.settings,
    meta: { importedFrom: originText(origin) },
    ...(hasWait && { expiresAt }),
    ...(limit && { limit: { concurrency: 1, ...(limit.strict && { strict: limit.strict }) } }),
  };
  const errors: ErrorRecord[] = error
    ? [
        {
          type: "Error",
          code: "imported",
          message: error.message.slice(0, LONGEST_MESSAGE).toWellFormed().replaceAll("\0", ""),
          attempt: Math.max(1, attempts),
          at: error.at,
          ...(error.stack && {
            stack: error.stack.slice(0, LONGEST_MESSAGE).toWellFormed().replaceAll("\0", ""),
          }),
        },
      ]
    : [];
  return {
    kind: "job",
    id: idOf(origin),
    type: job.type,
    queue: job.queue,
    priority: job.priority,
    state: isDead ? "discarded" : dueAt > now ? waitingState(attempts) : "available",
    createdAt: iso(origin.createdAt),
    dueAt: iso(dueAt),
    ...(attempts > 0 && { attempt: attempts }),
    ...(hasWait && { waitAt: iso(expiresAt) }),
    ...(limit && { limitKey: limit.key }),
    ...(job.uniqueKey !== undefined && { uniqueKey: job.uniqueKey }),
    ...(isDead && { finishedAt: iso(deadAt), deadLetter: true as const }),
    payload: job.payload,
    options,
    ...(errors.length > 0 && { errors }),
  };
}

const waitingState = (attempts: number) => (attempts > 0 ? "retryable" : "scheduled");
