import { nearestName } from "./option-keys.ts";

/**
 * Every code curfew throws or keeps on a job, in one place; docs/errors.md is generated from this table.
 * `programmer`: thrown at once where the mistake was written. `operating`: the world failed.
 * `verdict`: kept on a job, never thrown at the caller.
 */
export const ERRORS = {
  invalid_duration: { kind: "programmer", says: "is not a duration that can be kept" },
  invalid_instant: { kind: "programmer", says: "does not name an instant" },
  invalid_timeout: { kind: "programmer", says: "is not a timeout that can be kept" },
  invalid_when: { kind: "programmer", says: "does not say when" },
  invalid_cron: { kind: "programmer", says: "is not a cron expression that can be kept" },
  unknown_zone: { kind: "programmer", says: "is not a time zone that is known here" },
  no_such_time: { kind: "programmer", says: "does not name one instant in its time zone" },
  timeouts_contradict: { kind: "programmer", says: "contradicts another timeout" },
  never_runs: {
    kind: "programmer",
    says: "ends at or before the job's scheduled time, so the job could never run",
  },
  invalid_retry: { kind: "programmer", says: "is not a retry policy" },
  invalid_name: { kind: "programmer", says: "is not a valid name" },
  invalid_option: { kind: "programmer", says: "is not a valid value here" },
  unknown_option: { kind: "programmer", says: "is not an option" },
  invalid_definition: { kind: "programmer", says: "is not a definition made by defineJob" },
  invalid_workflow: { kind: "programmer", says: "is not a workflow that can be run" },
  invalid_saga: { kind: "programmer", says: "is not a saga made by defineSaga" },
  missing_handler: { kind: "programmer", says: "is declared and has no handler" },
  missing_correlation: { kind: "programmer", says: "is declared and does not say which saga it belongs to" },
  invalid_correlation: { kind: "programmer", says: "does not name a saga" },
  unknown_message: { kind: "programmer", says: "is not a message of this saga" },
  unknown_timeout: { kind: "programmer", says: "is not a timeout of this saga" },
  no_next_state: { kind: "programmer", says: "is not a next state, and nothing was saved" },
  invalid_saga_state: { kind: "programmer", says: "does not fit the saga's state schema" },
  identity_changed: { kind: "programmer", says: "is not the id of this saga, and nothing was saved" },
  too_many_pending: { kind: "programmer", says: "is one timeout too many" },
  no_sender: { kind: "programmer", says: "has nobody to reply to" },
  step_over: { kind: "programmer", says: "was called after its handler had ended" },
  newer_state: { kind: "operating", says: "A newer version of the saga wrote its state" },
  invalid_module: { kind: "operating", says: "The module of a sandbox is not a processor of its definition" },
  load_timeout: { kind: "operating", says: "The module of a sandbox was not loaded in time" },
  invalid_payload: { kind: "programmer", says: "does not fit the definition's schema" },
  invalid_result: { kind: "programmer", says: "does not fit the definition's result schema" },
  not_json: { kind: "programmer", says: "cannot be kept as JSON" },
  too_large: { kind: "programmer", says: "is larger than the limit" },
  invalid_priority: { kind: "programmer", says: "is not a priority" },
  invalid_limit: { kind: "programmer", says: "is not a usable limit" },
  closed: { kind: "operating", says: "The engine is closed" },
  concurrency: { kind: "operating", says: "The lease on a timeout is not held by whoever names it" },
  known_cron: { kind: "operating", says: "A cron with this name is stored already" },
  known_id: { kind: "operating", says: "A timeout with this id is stored already" },
  not_found: { kind: "operating", says: "There is no such job or cron" },
  duplicate_job: { kind: "operating", says: "A job with the same unique key exists" },
  invalid_state: { kind: "operating", says: "The job's state does not allow this" },
  unknown_store: { kind: "programmer", says: "is not a store curfew knows" },
  store_failed: { kind: "operating", says: "The store did not answer" },
  server_failed: { kind: "operating", says: "The server did not answer" },
  server_refused: { kind: "operating", says: "The server refused the request" },
  not_over_http: { kind: "programmer", says: "cannot be said over HTTP" },
  unsupported_node: { kind: "operating", says: "This version of Node is too old" },
  result_timeout: { kind: "operating", says: "The job did not end within the time given" },
  result_gone: { kind: "operating", says: "The job ended, and its result was not kept" },
  job_failed: { kind: "operating", says: "The job ended without a result" },
  workflow_failed: { kind: "operating", says: "The workflow ended without success" },
  parent_results_too_large: {
    kind: "verdict",
    says: "The results of the steps before it are too large to be handed on",
  },
  timeout: { kind: "verdict", says: "The attempt ran longer than its attempt timeout" },
  total_timeout: { kind: "verdict", says: "The job used up its total budget" },
  enqueue_ttl_expired: { kind: "verdict", says: "The job was not started within its wait timeout" },
  stalled: { kind: "verdict", says: "The attempt gave no sign of life within its heartbeat timeout" },
  visibility_timeout: { kind: "verdict", says: "A remote worker let its named visibility timeout run out" },
  killed: { kind: "verdict", says: "The sandbox died in the middle of the attempt" },
  shutdown: { kind: "verdict", says: "The worker shut down and gave the job back" },
  handler_error: { kind: "verdict", says: "The handler threw an error without a code of its own" },
  discarded_by_handler: { kind: "verdict", says: "The handler threw Discard" },
  too_many_returns: { kind: "verdict", says: "The job was given back too often without ending" },
  rate_limited: {
    kind: "verdict",
    says: "The limit of the job's key was reached, and its limit says to drop it",
  },
  queue_full: { kind: "operating", says: "The queue holds as many waiting jobs as it may" },
  cancelled: { kind: "verdict", says: "The job was cancelled" },
} as const satisfies Record<string, { kind: "programmer" | "operating" | "verdict"; says: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** What curfew throws. `code` is stable; `field` and `value` name the offender where there is one. */
export class CurfewError extends Error {
  override readonly name: string = "CurfewError";
  readonly code: ErrorCode;
  readonly field: string | undefined;

  constructor(code: ErrorCode, message: string, options: { field?: string; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.field = options.field;
  }
}

/** A value as it appears in a message: recognisable, on one line and bounded, whatever it is. */
export function show(value: unknown): string {
  let text: string | undefined;
  if (typeof value === "bigint") text = `${value}n`;
  else if (typeof value === "number" || typeof value === "undefined") text = String(value);
  else if (typeof value === "function" || typeof value === "symbol") text = typeof value;
  else {
    try {
      text = JSON.stringify(value);
    } catch {
      text = undefined;
    }
  }
  text ??= Object.prototype.toString.call(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** A programmer error in the one form all of them have: field, value, what is wrong, and the fix. */
export function refuse(
  code: ErrorCode,
  field: string,
  value: unknown,
  fix: string,
  caught?: { readonly cause: unknown },
): CurfewError {
  return new CurfewError(code, `${field}: ${show(value)} ${ERRORS[code].says}; ${fix}`, { field, ...caught });
}

/** A number that is out of its range, as the RangeError that JavaScript itself would throw, with code and field. */
export function refuseRange(
  code: ErrorCode,
  field: string,
  value: unknown,
  fix: string,
): RangeError & { readonly code: ErrorCode; readonly field: string } {
  const { message } = refuse(code, field, value, fix);
  return Object.assign(new RangeError(message), { code, field });
}

/** A value of the wrong kind, as the TypeError that JavaScript itself would throw, with code and field. */
export function refuseType(
  code: ErrorCode,
  field: string,
  value: unknown,
  fix: string,
): TypeError & { readonly code: ErrorCode; readonly field: string } {
  const { message } = refuse(code, field, value, fix);
  return Object.assign(new TypeError(message), { code, field });
}

/** Refuses keys that plain JavaScript may pass where TypeScript would not compile. */
export function refuseUnknownKeys(value: unknown, field: string, known: readonly string[]): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse("invalid_option", field, value, "write an object");
  }
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const nearest = nearestName(key, known);
    const meant = nearest === undefined ? "" : `did you mean ${nearest}? `;
    const at = field === "" ? key : `${field}.${key}`;
    throw refuse("unknown_option", at, key, `${meant}known are ${known.join(", ")}`);
  }
}
