import type { ErrorRecord } from "../../core/job/job.ts";
import type { ProgressNote } from "../../core/job/progress.ts";
import type { KeptEvent } from "../../engine/remote/event-journal.ts";
import { instantText } from "./durations.ts";
import { errorFields } from "./job.ts";
import { noteFields } from "./progress.ts";

/** An event of the engine in the envelope of the specification. */
export function eventFields(event: KeptEvent): Record<string, unknown> {
  const error = event.error as unknown as ErrorRecord | undefined;
  return {
    specversion: "1.0",
    id: event.id,
    type: event.name,
    source: "ojs://curfew",
    time: instantText(event.at),
    subject: event.job,
    data: {
      job_id: event.job,
      job_type: event.type,
      queue: event.queue,
      attempt: event.attempt,
      ...(event.elapsed !== undefined && { duration_ms: event.elapsed }),
      ...(event.late === true && { late: true }),
      ...(typeof event.worker === "string" && { worker_id: event.worker }),
      ...(event.progress !== undefined && dataOfProgress(event.progress as unknown as ProgressNote)),
      ...(error && dataOfError(event.name, error)),
      ...(error && event.name === "job.expired" && dataOfExpiry(event.at, error)),
      ...(event.name === "job.discarded" && { total_attempts: event.attempt }),
      ...(event.deadLetter === true && { dead_letter: true }),
      ...(typeof event.maxAttempts === "number" && { max_attempts: event.maxAttempts }),
      ...(typeof event.dueAt === "number" && { next_retry_at: instantText(event.dueAt) }),
    },
  };
}

function dataOfProgress({ value, note }: ProgressNote): Record<string, unknown> {
  const { message, data } = noteFields(note);
  return { progress: value, message, data };
}

/** What the specification of events asks of `job.expired`, beside what that of timeouts asks of `job.ttl_expired`. */
function dataOfExpiry(at: number, { limit = 0, elapsed = 0 }: ErrorRecord): Record<string, unknown> {
  return { created_at: instantText(at - elapsed), expired_at: instantText(at), ttl_ms: limit };
}

function dataOfError(name: string, error: ErrorRecord): Record<string, unknown> {
  const fields = errorFields(error);
  const { timeout_kind, limit_seconds, elapsed_seconds } = fields;
  return {
    [name === "job.discarded" ? "last_error" : "error"]: fields,
    ...(timeout_kind !== undefined && { timeout_kind, limit_seconds, elapsed_seconds }),
  };
}
