import { dueAtOf, type ErrorRecord, type JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { checkpointOf, progressOf } from "../../engine/remote/notes.ts";
import { instantText } from "./durations.ts";

type Fields = Record<string, unknown>;

/** What a job's error looks like on the wire. */
export function errorFields(record: ErrorRecord): Fields {
  const { type, code, message, attempt, at, kind, limit, elapsed, details, stack, cause } = record;
  return {
    type,
    code,
    message,
    attempt,
    occurred_at: instantText(at),
    ...(kind && { timeout_kind: kind }),
    ...(limit !== undefined && { limit_seconds: limit / 1_000 }),
    ...(elapsed !== undefined && { elapsed_seconds: elapsed / 1_000 }),
    ...(record.predicted && { predicted: true }),
    ...(record.forced && { forced: true }),
    ...(details !== undefined && { details }),
    ...(cause && { cause: { type: cause.type, code: cause.code, message: cause.message } }),
    ...(stack !== undefined && { backtrace: stack.split("\n") }),
  };
}

/** The milliseconds between the last failure and the retry that followed it. */
function retryDelayOf(row: JobRow): number | undefined {
  const last = row.errors?.at(-1);
  if (!last || row.attempt === 0) return undefined;
  const delay = dueAtOf(row.rank) - last.at;
  return delay >= 0 ? delay : undefined;
}

function timeFields(row: JobRow): Fields {
  const { state, createdAt, startedAt, finishedAt } = row;
  const dueAt = dueAtOf(row.rank);
  const created = instantText(createdAt);
  const fields: Fields = { created_at: created, enqueued_at: created };
  if ((state === "scheduled" || state === "pending") && dueAt > createdAt)
    fields.scheduled_at = instantText(dueAt);
  if (state === "retryable") fields.next_attempt_at = instantText(dueAt);
  if (startedAt !== null) fields.started_at = instantText(startedAt);
  if (finishedAt === null) return fields;
  const at = instantText(finishedAt);
  if (state === "cancelled") fields.cancelled_at = at;
  if (state === "discarded") fields.discarded_at = at;
  // A job that ended without having run was not completed (SEMANTICS 4.5).
  if (startedAt !== null && state !== "cancelled") fields.completed_at = at;
  return fields;
}

/** The limits of a job in milliseconds; never `timeout`, which a public client reads as milliseconds. */
function limitFields(row: JobRow): Fields {
  const { policy, options } = row;
  const said = options?.rung?.timeouts;
  const limits: Fields = {
    timeout_ms: policy ? policy.attempt : said?.attempt,
    total_timeout_ms: options?.total,
    enqueue_ttl_ms: options?.wait,
    grace_period_ms: policy ? policy.grace : said?.grace,
    heartbeat_timeout_ms: policy ? policy.heartbeat : said?.heartbeat,
    visibility_timeout_ms: policy?.visibility ?? options?.visibility,
    timeout_mode: policy?.mode ?? said?.mode,
    retry_fit: policy?.retry.retryFit ?? options?.rung?.retry?.retryFit,
  };
  for (const name in limits) if (limits[name] == null) delete limits[name];
  return limits;
}

function reportFields(row: JobRow): Fields {
  const { errors, state, attempt } = row;
  const last = errors?.at(-1);
  const progress = progressOf(row);
  const checkpoint = checkpointOf(row);
  const delay = retryDelayOf(row);
  // Success and a manual retry clear the error; its history stays (SEMANTICS 4.6).
  const hasError = last && state !== "completed" && (attempt > 0 || state === "discarded");
  return {
    ...(hasError && { error: errorFields(last) }),
    ...(errors && errors.length > 0 && { errors: errors.map(errorFields) }),
    ...(delay !== undefined && { retry_delay_ms: delay }),
    ...(state === "completed" ? { progress: 1 } : progress && { progress: progress.value }),
    ...(checkpoint && { checkpoint }),
    ...(row.deadLetter && { dead_letter: true }),
  };
}

const DEFAULT_ATTEMPTS = 3;

function maxAttempts(row: JobRow): number {
  return row.policy?.retry.attempts ?? row.options?.rung?.retry?.attempts ?? DEFAULT_ATTEMPTS;
}

/**
 * A job as text. Its documents are JSON text already and are put in as they are: they come back as they were sent, and
 * nothing is parsed only to be written again.
 */
export function jobText(row: JobRow, more?: Fields): string {
  const { options } = row;
  const wire = options?.wire as { fields?: { [name: string]: Json }; spread?: true } | undefined;
  const expiresAt = options?.expiresAt;
  const fields: Fields = {
    specversion: "1.0",
    id: row.id,
    type: row.type,
    queue: row.queue,
    state: row.state,
    priority: row.priority,
    attempt: row.attempt,
    max_attempts: maxAttempts(row),
    ...(expiresAt !== undefined && { expires_at: instantText(expiresAt) }),
    ...timeFields(row),
    ...wire?.fields,
    ...limitFields(row),
    ...(row.errors || row.attempt > 0 ? reportFields(row) : row.checkpoint !== null && reportFields(row)),
    meta: options?.meta ?? {},
    ...more,
  };
  const args = wire?.spread ? row.payload : `[${row.payload}]`;
  const result = row.result === null ? "" : `,"result":${row.result}`;
  return `${JSON.stringify(fields).slice(0, -1)},"args":${args}${result}}`;
}

/** The instants of a running attempt, for a worker whose clock is another: all of them beside the server's own time. */
export function deadlineFields(row: JobRow, now: Instant): Fields {
  const text = (at: Instant | null) => (at === null ? null : instantText(at));
  return {
    soft_at: text(row.softAt),
    hard_at: text(row.hardAt),
    total_at: text(row.totalAt),
    stall_at: text(row.stallAt),
    silence_ms: row.heartbeat,
    server_time: instantText(now),
  };
}

/** A job as it is handed to the worker that fetched it. */
export function fetchedText(row: JobRow, now: Instant): string {
  // Where a rung named the heartbeat, only the handler's own signs of life count (SEMANTICS 3.6).
  const beats = row.policy?.rungs.heartbeat === "built-in" ? "worker" : "handler";
  return jobText(row, { fence: row.fence, beats, deadlines: deadlineFields(row, now) });
}

/** The answer to ACK and NACK, in one shape that every known client can read. */
export function settledText(row: JobRow): string {
  const { next_attempt_at, completed_at, discarded_at, cancelled_at } = timeFields(row);
  const delay = row.state === "retryable" ? retryDelayOf(row) : undefined;
  const head = JSON.stringify({
    acknowledged: true,
    id: row.id,
    job_id: row.id,
    state: row.state,
    attempt: row.attempt,
    max_attempts: maxAttempts(row),
    next_attempt_at,
    completed_at,
    discarded_at,
    cancelled_at,
    retry_delay_ms: delay,
  });
  return `${head.slice(0, -1)},"job":${jobText(row)}}`;
}
