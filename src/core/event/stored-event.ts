import type { LifecycleEvent } from "../job/decide/decision.ts";
import type { ErrorRecord, JobId, JobRow, Policy } from "../job/job.ts";
import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { NewEvent } from "./new-event.ts";

/** One event as the journal stores it. */
export interface StoredEvent {
  readonly name: string;
  readonly at: Instant;
  /** The tenant of what it is about; left out if there is none. */
  readonly tenant?: string;
  /** Left out if the event is about a queue, a worker, a workflow or the like. */
  readonly job?: JobId;
  readonly type?: string;
  readonly queue?: string;
  readonly attempt?: number;
  /** Milliseconds since the start of the attempt. */
  readonly elapsed?: number;
  /** Without stacks. They stay on the job, because many may read the journal. */
  readonly error?: ErrorRecord;
  /** What its policy does with an attempt that times out; with timeouts. */
  readonly mode?: Policy["mode"];
  readonly dueAt?: Instant;
  readonly late?: true;
  readonly deadLetter?: true;
  /** Who started the attempt; only with `job.started`. */
  readonly worker?: string;
  /** How many attempts the job has in total; only with `job.retrying`. */
  readonly maxAttempts?: number;
  /** Until when the worker may be silent; only with `job.heartbeat`. */
  readonly visibleUntil?: Instant;
  readonly progress?: { readonly value: number; readonly note?: Json };
  /** The JSON text of the result, if it is at most 2,000 characters; only with `job.completed`. */
  readonly result?: string;
  /** What the event is about, if it is not a job. */
  readonly subject?: string;
  /** Further fields of events that are not about a job. */
  readonly data?: { readonly [key: string]: Json };
}

/** Events that say that a limit was broken. */
export const TIMEOUT_EVENTS = [
  "job.timeout",
  "job.total_timeout",
  "job.stalled",
  "job.ttl_expired",
  "job.visibility_timeout",
] as const;

const TIMEOUTS: ReadonlySet<string> = new Set(TIMEOUT_EVENTS);

function isTimeout(name: string): boolean {
  return TIMEOUTS.has(name);
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** A longer result is not recorded. It stays on its job. */
const RESULT_LIMIT = 2_000;

/** Builds the event of one committed lifecycle event. `sharedFields` has what it shares with many others. */
export function jobEvent(
  sharedFields: Json,
  row: JobRow,
  event: LifecycleEvent,
  at: Instant,
  result?: string | null,
): NewEvent {
  const { name, error, dueAt, late, deadLetter } = event;
  const of: Mutable<Omit<StoredEvent, "name">> = { job: row.id, at, attempt: row.attempt };
  if (row.startedAt !== null && name !== "job.started") of.elapsed = at - row.startedAt;
  if (error) of.error = withoutStack(error);
  if (error && isTimeout(name)) of.mode = row.policy?.mode ?? "fail";
  if (dueAt !== undefined) of.dueAt = dueAt;
  if (late) of.late = true;
  if (deadLetter) of.deadLetter = true;
  if (name === "job.retrying" && row.policy) of.maxAttempts = row.policy.retry.attempts;
  if (name === "job.completed" && result && result.length <= RESULT_LIMIT) of.result = result;
  return { event: sharedFields, of: of as unknown as { readonly [key: string]: Json } };
}

export function withoutStack({ stack: _stack, cause, ...error }: ErrorRecord): ErrorRecord {
  if (!cause) return error;
  const { stack: _inner, ...rest } = cause;
  return { ...error, cause: rest };
}

/** Who runs an attempt. The policy names a remote worker. For it, the row names the engine that claimed. */
export function workerOf(row: JobRow): string | undefined {
  return row.policy?.worker ?? row.worker ?? undefined;
}

/** Whether a stored value is an event of curfew. The table may also contain older formats and a user's events. */
export function isStoredEvent(body: unknown): body is StoredEvent {
  return (
    typeof body === "object" &&
    body !== null &&
    "name" in body &&
    typeof body.name === "string" &&
    "at" in body &&
    typeof body.at === "number"
  );
}
