import { CurfewError, ERRORS, type ErrorCode } from "../core/errors.ts";
import type { ErrorRecord, JobState } from "../core/job/job.ts";
import { ConcurrencyError, type LeaseLoss } from "../core/timeout/timeout.ts";
import type { WorkflowFailure, WorkflowState } from "../core/workflow/workflow-record.ts";
import { DuplicateJobError } from "../engine/enqueue/duplicate-job-error.ts";
import { QueueFullError } from "../engine/enqueue/queue-full-error.ts";
import { JobFailedError } from "../engine/operations/job-failed-error.ts";
import { WorkflowFailedError } from "../engine/workflows/workflow-failed-error.ts";
import { type Reply, refusalOf, refused } from "./transport.ts";

/** What the server says about an error of its engine. */
interface Details {
  readonly curfew_code?: unknown;
  readonly field?: unknown;
  readonly message?: unknown;
  readonly queue?: unknown;
  readonly bound?: unknown;
  readonly state?: unknown;
  readonly record?: unknown;
  readonly failure?: unknown;
  readonly owner?: unknown;
  readonly reason?: unknown;
}

function detailsOf(reply: Reply): Details {
  const { details } = refusalOf(reply);
  return typeof details === "object" && details !== null ? details : {};
}

/** The error that the engine threw behind the server, so that callers catch the same one wherever they run. */
export function errorOf(what: string, reply: Reply, about = ""): CurfewError {
  const { code: said, message } = refusalOf(reply);
  const details = detailsOf(reply);
  const own = typeof details.message === "string" ? details.message : message;
  const text = typeof own === "string" ? own.slice(0, 2_000) : "";
  if (said === "QUEUE_FULL") return new QueueFullError(String(details.queue), Number(details.bound), [about]);
  const code = String(details.curfew_code);
  if (!Object.hasOwn(ERRORS, code)) return refused(what, reply);
  if (code === "job_failed") {
    const record = details.record as ErrorRecord | null;
    return new JobFailedError({ id: about, state: details.state as JobState, errors: record && [record] });
  }
  if (code === "workflow_failed")
    return new WorkflowFailedError(about, {
      state: details.state as WorkflowState,
      failure: details.failure as WorkflowFailure | null,
    });
  if (code === "concurrency")
    return new ConcurrencyError(about, String(details.owner), details.reason as LeaseLoss);
  const { field } = details;
  return new CurfewError(code as ErrorCode, text, typeof field === "string" ? { field } : {});
}

export function duplicateOf(type: string, reply: Reply): DuplicateJobError | undefined {
  const { unique_key_conflict: isUnique, existing_job_id: existing } = detailsOf(reply) as {
    readonly unique_key_conflict?: unknown;
    readonly existing_job_id?: unknown;
  };
  return isUnique === true ? new DuplicateJobError(type, String(existing)) : undefined;
}
