import type { LifecycleEvent } from "../job/decision.ts";
import type { ErrorRecord, JobId, JobRow, Policy } from "../job/job.ts";
import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { NewEvent } from "./new-event.ts";

/** What the stream keeps of one happening, as it is stored. */
export interface StoredEvent {
  readonly name: string;
  readonly at: Instant;
  /** The job it tells of; left out where it tells of a queue, a worker, a workflow or the like. */
  readonly job?: JobId;
  readonly type?: string;
  readonly queue?: string;
  readonly attempt?: number;
  /** Milliseconds from the start of the attempt. */
  readonly elapsed?: number;
  /** Without stacks, which stay with the job: an event is read by many. */
  readonly error?: ErrorRecord;
  /** What its policy does with an attempt that times out; with timeouts. */
  readonly mode?: Policy["mode"];
  readonly dueAt?: Instant;
  readonly late?: true;
  readonly deadLetter?: true;
  /** Who started the attempt; with `job.started`. */
  readonly worker?: string;
  /** How many attempts the job has in all; with `job.retrying`. */
  readonly maxAttempts?: number;
  /** Until when its worker may be silent; with `job.heartbeat`. */
  readonly visibleUntil?: Instant;
  readonly progress?: { readonly value: number; readonly note?: Json };
  /** The JSON text of what the handler returned, if it is short; with `job.completed`. */
  readonly result?: string;
  /** What it tells of, where that is no job. */
  readonly subject?: string;
  /** What else there is to say, where it tells of no job. */
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

/** A longer result stays with its job. */
const RESULT_LIMIT = 2_000;

/** What one committed lifecycle event tells of its job, beside what its head says for many. */
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

/** Who runs an attempt. A remote worker stands in the policy; the row names the engine that claimed for it. */
export function workerOf(row: JobRow): string | undefined {
  return row.policy?.worker ?? row.worker ?? undefined;
}

/** Whether a stored text is an event of ours: a table of events may hold older ones, and a user's own. */
export function isKeptEvent(body: unknown): body is StoredEvent {
  return (
    typeof body === "object" &&
    body !== null &&
    "name" in body &&
    typeof body.name === "string" &&
    "at" in body &&
    typeof body.at === "number"
  );
}
