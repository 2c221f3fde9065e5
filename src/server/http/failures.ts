import { CurfewError, ERRORS, type ErrorCode, show } from "../../core/errors.ts";
import type { Sender } from "../../core/job/decide/holder.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import { QueueFullError } from "../../engine/enqueue/queue-full-error.ts";
import { TenantLimitError } from "../../engine/tenants/tenant-limit-error.ts";
import { TENANT_LIMITS } from "../wire/tenants.ts";
import { HttpError } from "./http-error.ts";

const DOCS = "https://openjobspec.org/spec/http-binding";

/** Hints for a 404. */
const GONE = {
  job: "Check the id; a finished job is deleted when its retention is over",
  "dead letter": "Check the id; a retried dead letter is a plain job again",
  "checkpoint of job": "Nothing was saved yet, or it was deleted",
  workflow: "Check the id; a workflow is deleted some time after it ended",
  cron: "Check the name; GET /ojs/v1/cron lists all crons",
  calendar: "Check the name; GET /ojs/v1/admin/calendars lists all calendars",
  "rate limit": "Check the key; a limit is known while it has live jobs or an override",
  pool: "Check the name; GET /ojs/v1/admin/pools lists all pools",
  timeout: "Check the id; a timeout is gone once it is handled, revoked or replaced",
  schema: "Check the type and the version; GET /ojs/v1/admin/schemas lists all types with schemas",
  saga: "Check the type and the id; a completed saga is deleted when its retention is over",
  tenant: "Check the name; GET /ojs/v1/admin/tenants lists all tenants",
  webhook: "Check the id; GET /ojs/v1/webhooks/subscriptions lists all",
  delivery: "Check the id; a delivery is kept for a day, or for 14 days if it was not delivered",
  worker: "Check the id; a worker is forgotten after a minute without a heartbeat",
};

export function notFound(kind: keyof typeof GONE, id: string): HttpError {
  return new HttpError(404, "not_found", `There is no ${kind} ${show(id)}`, {
    hint: GONE[kind],
    details: { resource_type: kind, resource_id: id.slice(0, 128) },
  });
}

/** The state of the job does not allow this, or the sender no longer holds the job. */
export function conflict(row: JobRow | null, what: string, sender: Sender = {}): HttpError {
  const state = row?.state ?? "gone";
  const held = state === "active" ? "; another attempt or worker holds it" : "";
  return new HttpError(409, "conflict", `${what}: the job is ${state}${held}`, {
    details: {
      job_id: row?.id ?? null,
      state,
      current_state: state,
      // Repeated to a sender that knows it, so that it recognises its own report. Others must not learn it.
      ...(row && sender.fence === row.fence && { fence: row.fence }),
    },
  });
}

const REFUSED = [400, "invalid_request"] as const;

/** Errors of the core with a status of their own. Other programmer errors are 400; everything else is a 500. */
const STATUS: Partial<Record<ErrorCode, readonly [status: number, code: string]>> = {
  not_found: [404, "not_found"],
  invalid_state: [409, "conflict"],
  invalid_retry: [422, "schema_validation"],
  known_cron: [409, "duplicate"],
  known_schema: [409, "duplicate"],
  incompatible_schema: [409, "incompatible_schema"],
  schema_mismatch: [422, "schema_validation"],
  not_json: [400, "invalid_payload"],
  too_large: [413, "payload_too_large"],
  queue_full: [429, "QUEUE_FULL"],
  closed: [503, "backend_error"],
  store_failed: [503, "backend_error"],
};

/** Replaces option names of the core by the names of the wire. */
const WIRE_NAMES: readonly (readonly [RegExp, string])[] = [
  [/\b(options\.)?timeouts\.wait\b/g, "enqueue_ttl"],
  [/\b(options\.)?timeouts\.attempt\b/g, "timeout"],
  [/\b(options\.)?timeouts\.total\b/g, "total_timeout"],
  [/\b(options\.)?timeouts\.grace\b/g, "grace_period"],
  [/\b(options\.)?timeouts\.heartbeat\b/g, "heartbeat_timeout"],
  [/\boptions\.delay\/at\b/g, "scheduled_at"],
  [/\b(options\.)?expiresAt\b/g, "expires_at"],
];

/** A bounded queue is full. The conformance suite wants this code in capitals. */
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

/** A tenant has reached a limit. The extension wants this code in capitals, and these names. */
function tenantLimit({ tenant, limit, most, current, retryAfter, message }: TenantLimitError): HttpError {
  const details = { tenant_id: tenant, limit: TENANT_LIMITS[limit], current, maximum: most };
  if (retryAfter === null) return new HttpError(413, "TENANT_LIMIT_EXCEEDED", message, { details });
  const headers = { "Retry-After": String(Math.ceil(retryAfter / 1_000)) };
  return new HttpError(429, "TENANT_LIMIT_EXCEEDED", message, { retryable: true, headers, details });
}

/** Turns everything that a request may throw into the error reply. */
export function asHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown;
  if (thrown instanceof QueueFullError) return queueFull(thrown);
  if (thrown instanceof TenantLimitError) return tenantLimit(thrown);
  if (isCoded(thrown)) {
    const isRefusal = ERRORS[thrown.code].kind === "programmer";
    const [status, code] = STATUS[thrown.code] ?? (isRefusal ? REFUSED : []);
    if (status !== undefined && code !== undefined) {
      // A store's message may name hosts and tables, so only the log has it, under the request's id.
      const said =
        thrown.code === "store_failed" ? "The store does not answer; try again later" : thrown.message;
      const message = WIRE_NAMES.reduce((text, [from, to]) => text.replace(from, to), said);
      return new HttpError(status, code, message, {
        retryable: status === 503 || status === 429,
        ...(status === 422 && { type: "validation_error" }),
        ...(thrown.field !== undefined && { details: { field: thrown.field } }),
        ...(status === 503 && { headers: { "Retry-After": "1" } }),
        ...(status < 500 && { details: codeOf(thrown) }),
      });
    }
  }
  return new HttpError(500, "internal_error", "The server failed; its log has this request by its id");
}

/** An error of the library: some refusals are a RangeError or a TypeError with a code. */
function isCoded(thrown: unknown): thrown is Pick<CurfewError, "code" | "field" | "message"> {
  if (thrown instanceof CurfewError) return true;
  if (!(thrown instanceof RangeError || thrown instanceof TypeError) || !("code" in thrown)) return false;
  return typeof thrown.code === "string" && Object.hasOwn(ERRORS, thrown.code);
}

/** The library's own words, by which our client throws the same error as an engine. */
function codeOf({ code, field, message }: Pick<CurfewError, "code" | "field" | "message">): Json {
  return { curfew_code: code, ...(field !== undefined && { field }), message };
}

/** The body of an error reply. */
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
