import type { JournalEvent } from "../core/event/journal-event.ts";
import type { ErrorRecord } from "../core/job/job.ts";
import { errorFields, instantText, noteFields } from "./wire-fields.ts";

/** An event in the CloudEvents envelope, with the data that Open Job Spec defines for each type. */
export interface CloudEvent {
  readonly specversion: "1.0";
  readonly id: string;
  readonly type: string;
  readonly source: string;
  /** RFC 3339. */
  readonly time: string;
  /** The id of the job, or the name of the queue, worker, saga or workflow that the event is about. */
  readonly subject?: string;
  readonly data: { readonly [key: string]: unknown };
}

type Data = CloudEvent["data"];

export function toCloudEvent(event: JournalEvent, source = "ojs://curfew"): CloudEvent {
  const subject = event.job ?? event.subject;
  return {
    specversion: "1.0",
    id: event.id,
    type: event.name,
    source,
    time: instantText(event.at),
    ...(subject !== undefined && { subject }),
    data: event.job === undefined ? dataOfOthers(event) : dataOfJob(event),
  };
}

/** The fields of events that are not about a job, by the first word of the event's name. */
const WIRE_NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  worker: { worker: "worker_id", gap: "gap_ms", seenAt: "last_seen_at" },
  sandbox: { worker: "worker_id", type: "job_type" },
  saga: { saga: "saga_id", type: "saga_type" },
  scheduling: {
    duration: "duration_ms",
    availableCount: "available_count",
    activeJobs: "active_jobs",
    waitingJobs: "waiting_jobs",
    previousStrategy: "previous_strategy",
    newStrategy: "new_strategy",
  },
  timeout: { timeout: "timeout_id" },
  webhook: { dueAt: "next_attempt_at" },
  workflow: { workflow: "workflow_id", elapsed: "duration_ms" },
};

/** Fields that hold an instant in milliseconds. */
const INSTANTS: ReadonlySet<string> = new Set(["seenAt", "dueAt"]);

function dataOfOthers({ name, queue, data }: JournalEvent): Data {
  const names = WIRE_NAMES[name.slice(0, name.indexOf("."))];
  const fields: Record<string, unknown> = queue === undefined ? {} : { queue };
  for (const [field, value] of Object.entries(data ?? {}))
    fields[names?.[field] ?? field] =
      INSTANTS.has(field) && typeof value === "number" ? instantText(value) : value;
  return fields;
}

function dataOfJob(event: JournalEvent): Data {
  const { name, at, error, attempt } = event;
  return {
    job_id: event.job,
    job_type: event.type,
    queue: event.queue,
    attempt,
    ...(event.elapsed !== undefined && { duration_ms: event.elapsed }),
    ...(event.late && { late: true }),
    ...(event.worker !== undefined && { worker_id: event.worker }),
    ...(event.result !== undefined && { result: JSON.parse(event.result) }),
    ...(event.progress && dataOfProgress(event.progress)),
    ...(error && dataOfError(name, error)),
    ...(error && name === "job.expired" && dataOfExpiry(at, error)),
    ...(name === "job.discarded" && { total_attempts: attempt }),
    ...(event.deadLetter && { dead_letter: true }),
    ...(event.maxAttempts !== undefined && { max_attempts: event.maxAttempts }),
    ...(event.dueAt !== undefined && { next_retry_at: instantText(event.dueAt) }),
    ...(event.visibleUntil !== undefined && { visible_until: instantText(event.visibleUntil) }),
    ...event.data,
  };
}

function dataOfProgress({ value, note }: NonNullable<JournalEvent["progress"]>): Data {
  const { message, data } = noteFields(note);
  return { progress: value, message, data };
}

/**
 * The fields that the event specification requires for `job.expired`. Those of `job.ttl_expired` come from the
 * timeout specification.
 */
function dataOfExpiry(at: number, { limit = 0, elapsed = 0 }: ErrorRecord): Data {
  return { created_at: instantText(at - elapsed), expired_at: instantText(at), ttl_ms: limit };
}

function dataOfError(name: string, error: ErrorRecord): Data {
  const fields = errorFields(error);
  const { timeout_kind, limit_seconds, elapsed_seconds } = fields;
  return {
    [name === "job.discarded" ? "last_error" : "error"]: fields,
    ...(timeout_kind !== undefined && { timeout_kind, limit_seconds, elapsed_seconds }),
  };
}
