import { refuse } from "../errors.ts";
import type { IdSource } from "../ids.ts";
import { type UniqueRule, uniqueKeyOf } from "../job/enqueue/unique-key.ts";
import type { JobId, JobOptions } from "../job/job.ts";
import { type KeyedLimit, limitKeyFrom } from "../limit/limit.ts";
import type { StoredQueue } from "../limit/queue-settings.ts";
import { type Cell, cellOfId, cellOfName } from "./cell.ts";
import { cellOfJob, type HomeKeys } from "./home-of-job.ts";

/*
 * Where a new job lives in a store with several homes (ADR 33). Nothing here runs for a store with one home: its source
 * of ids has no `namePrefix`.
 */

/** Whether all jobs of a queue are in one home: in order, or counted. */
export function isStrictQueue(settings: StoredQueue | undefined): boolean {
  return (
    settings !== undefined &&
    (settings.order === "strict" || settings.concurrency !== undefined || settings.depth !== undefined)
  );
}

interface Wishes {
  readonly queue: string;
  readonly isStrict: boolean;
  readonly isStep: boolean;
  /** The limit of the definition or of the call, and its key if that is a text. */
  readonly limit: { readonly key: unknown; readonly isSaid: boolean } | undefined;
  readonly unique: UniqueRule | undefined;
}

interface PlacingContext {
  readonly nextId: IdSource;
  readonly queueSettings?: (queue: string) => StoredQueue | undefined;
  readonly isStep?: boolean;
}

/** Whether the queue of a new job is in one home, after the job is checked. False in a store with one home. */
export function isInOneHome(
  { nextId, queueSettings, isStep = false }: PlacingContext,
  queue: string,
  limit: Wishes["limit"],
  unique: UniqueRule | undefined,
): boolean {
  if (nextId.namePrefix === undefined) return false;
  const isStrict = isStrictQueue(queueSettings?.(queue));
  refuseTwoHomes({ queue, isStrict, isStep, limit, unique });
  return isStrict;
}

/** Refuses a job that would have to be in two homes: its limits or its unique key would not hold. */
function refuseTwoHomes({ queue, isStrict, isStep, limit, unique }: Wishes): void {
  const strict = `queue ${JSON.stringify(queue)} is in one home (order "strict", concurrency or depth)`;
  if (isStep && isStrict)
    throw refuse(
      "two_homes",
      "queue",
      queue,
      `${strict}, and a step is in the home of its workflow: use another queue`,
    );
  if (isStep && limit)
    throw refuse(
      "two_homes",
      "limit",
      limit.key,
      "a step is in the home of its workflow, not of its limit: leave it out",
    );
  if (isStrict && limit)
    throw refuse(
      "two_homes",
      "limit",
      limit.key,
      `${strict}, and a limit has its own: leave out one of them`,
    );
  if (isStep || !unique) return;
  if (isStrict && !unique.queue)
    throw refuse(
      "two_homes",
      "unique.queue",
      false,
      `${strict}: write queue: true, so that the key is held per queue`,
    );
  if (!limit) return;
  const isCovered = !limit.isSaid && (typeof limit.key === "string" || unique.payload === true);
  if (isCovered) return;
  const fix =
    "equal unique keys must have equal limit keys, which have one home: let the unique key cover the whole payload, or write the limit as a text in the definition";
  throw refuse("two_homes", "unique.payload", unique.payload, fix);
}

/** What a job template says about its place. */
interface Placed {
  readonly id: JobId | undefined;
  readonly queue: string;
  readonly type: string;
  readonly options: JobOptions | null;
  readonly unique: UniqueRule | undefined;
  readonly hash: (text: string) => string;
  readonly key?: KeyedLimit["key"];
  readonly isStrict?: boolean;
}

/** The source of a job's id: in the cell of its strict queue, limit or unique key, or anywhere. */
export function placedId(template: Placed, payload: string, nextId: IdSource, given: unknown): () => JobId {
  const cell = cellOfTemplate(template, payload, nextId.namePrefix ?? "", given);
  if (cell !== undefined && template.id !== undefined && cellOfId(template.id) !== cell)
    throw givenElsewhere(template.id);
  return () => nextId(cell);
}

function cellOfTemplate(template: Placed, payload: string, prefix: string, given: unknown): Cell | undefined {
  const { key, unique, queue, type, options, hash, isStrict } = template;
  if (isStrict) return cellOfName(strictMark(prefix, queue));
  if (key !== undefined) {
    const limitKey = typeof key === "string" ? key : limitKeyFrom(key, given ?? JSON.parse(payload));
    return cellOfName(prefix + limitKey);
  }
  if (unique === undefined) return undefined;
  return cellOfName(prefix + uniqueKeyOf(unique, { type, queue, payload, meta: options?.meta }, hash));
}

interface GivenJob extends Omit<HomeKeys, "strictQueue"> {
  readonly id: JobId;
  readonly queue: string;
}

/** Refuses a job with an id of its own that is not where its keys are. */
export function checkGivenHome(job: GivenJob, isStrict: boolean, { namePrefix }: IdSource): void {
  if (namePrefix === undefined) return;
  const stored = (name: string | undefined) => (name === undefined ? undefined : namePrefix + name);
  const { workflow, limitKey, uniqueKey, queue, id } = job;
  const cell = cellOfJob({
    ...(workflow !== undefined && { workflow }),
    strictQueue: isStrict ? strictMark(namePrefix, queue) : undefined,
    ...(limitKey !== undefined && { limitKey: stored(limitKey) as string }),
    ...(uniqueKey !== undefined && { uniqueKey: stored(uniqueKey) as string }),
  });
  if (cell !== undefined && cellOfId(id) !== cell) throw givenElsewhere(id);
}

/** `queueMark` of the stored name. */
function strictMark(prefix: string, queue: string): string {
  return `${prefix}queue ${queue}`;
}

function givenElsewhere(id: JobId): Error {
  const fix =
    "leave it out: in this store an id names a home, and a job with a strict queue, a limit or a unique key is in theirs";
  return refuse("two_homes", "options.id", id, fix);
}
