import { CurfewError, ERRORS, type ErrorCode, show } from "../core/errors.ts";
import type { JobRow } from "../core/job/job.ts";
import { QueueFullError } from "../engine/enqueue/queue-full-error.ts";
import { HttpError } from "./http-error.ts";

const DOCS = "https://openjobspec.org/spec/http-binding";

/** Why a thing may not be there although its id is right. */
const GONE = {
  job: "Check the id; a finished job is deleted when its retention is over",
  "dead letter": "Check the id; a dead letter that was retried is a job again, and no dead letter",
  "checkpoint of job": "Nothing was saved yet, or it was deleted",
  workflow: "Check the id; a workflow is forgotten some time after it has ended",
  cron: "Check the name; GET /ojs/v1/cron lists those that there are",
  "rate limit": "Check the key; a limit is known while it has live jobs or an override",
  timeout: "Check the id; a timeout is gone once it is handled, revoked or replaced",
  saga: "Check the type and the id; a completed saga is forgotten when its retention is over",
  worker: "Check the id; a worker that has not beaten for a minute is forgotten",
};

/** There is no such thing. */
export function notFound(kind: keyof typeof GONE, id: string): HttpError {
  return new HttpError(404, "not_found", `There is no ${kind} ${show(id)}`, {
    hint: GONE[kind],
    details: { resource_type: kind, resource_id: id.slice(0, 128) },
  });
}

/** The state of a job does not allow what was asked, or the sender no longer holds it. */
export function conflict(row: JobRow | null, what: string): HttpError {
  const state = row?.state ?? "gone";
  const held = state === "active" ? ", but not the sender's: another attempt or worker holds it" : "";
  return new HttpError(409, "conflict", `${what}: the job is ${state}${held}`, {
    details: { job_id: row?.id ?? null, state, current_state: state, fence: row?.fence ?? null },
  });
}

/** What was sent cannot be done as it is. */
const REFUSED = [400, "invalid_request"] as const;

/** Refusals of the core by what they mean to a client, where they are no plain ones; everything else is our own fault. */
const STATUS: Partial<Record<ErrorCode, readonly [status: number, code: string]>> = {
  not_found: [404, "not_found"],
  invalid_state: [409, "conflict"],
  invalid_retry: [422, "schema_validation"],
  known_cron: [409, "duplicate"],
  not_json: [400, "invalid_payload"],
  too_large: [413, "payload_too_large"],
  queue_full: [429, "QUEUE_FULL"],
  closed: [503, "backend_error"],
  store_failed: [503, "backend_error"],
};

/** The core names fields in its own words; the client must find its own. */
const WIRE_NAMES: readonly (readonly [RegExp, string])[] = [
  [/\b(options\.)?timeouts\.wait\b/g, "enqueue_ttl"],
  [/\b(options\.)?timeouts\.attempt\b/g, "timeout"],
  [/\b(options\.)?timeouts\.total\b/g, "total_timeout"],
  [/\b(options\.)?timeouts\.grace\b/g, "grace_period"],
  [/\b(options\.)?timeouts\.heartbeat\b/g, "heartbeat_timeout"],
  [/\boptions\.delay\/at\b/g, "scheduled_at"],
  [/\b(options\.)?expiresAt\b/g, "expires_at"],
];

/** A bounded queue has no room: how full it is, and when to come again. The code is written as its suite has it. */
function queueFull({ queue, most, retryAfter, message, ids }: QueueFullError): HttpError {
  const bound = String(most);
  return new HttpError(429, "QUEUE_FULL", message, {
    retryable: true,
    headers: {
      "Retry-After": String(Math.ceil(retryAfter / 1_000)),
      "X-OJS-Queue-Depth": bound,
      "X-OJS-Queue-Bound": bound,
    },
    details: { queue, depth: most, bound: most, refused: ids.length },
  });
}

/** Whatever was thrown while a request was served, as the refusal that the client gets. */
export function asHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown;
  if (thrown instanceof QueueFullError) return queueFull(thrown);
  if (thrown instanceof CurfewError) {
    const isRefusal = ERRORS[thrown.code].kind === "programmer";
    const [status, code] = STATUS[thrown.code] ?? (isRefusal ? REFUSED : []);
    if (status !== undefined && code !== undefined) {
      // What a store says may name hosts and tables; the log has it, by the id of the request.
      const said =
        thrown.code === "store_failed" ? "The store does not answer; try again later" : thrown.message;
      const message = WIRE_NAMES.reduce((text, [from, to]) => text.replace(from, to), said);
      return new HttpError(status, code, message, {
        retryable: status === 503 || status === 429,
        ...(status === 422 && { type: "validation_error" }),
        ...(status === 503 && { headers: { "Retry-After": "1" } }),
      });
    }
  }
  return new HttpError(500, "internal_error", "The server failed; its log has this request by its id");
}

/** The body of an error reply. Nothing of ours is in it that the client could not know anyway. */
export function errorText(error: HttpError, requestId: string): string {
  const { details, hint, type, retryable } = error.more;
  return JSON.stringify({
    error: {
      code: error.code,
      type: type ?? error.code,
      message: error.message,
      retryable: retryable ?? error.status >= 500,
      ...(details !== undefined && { details }),
      ...(hint !== undefined && { hint }),
      ...(error.status === 404 && { hint: hint ?? "Check the path", docs_url: DOCS }),
      request_id: requestId,
    },
  });
}
