import { isObject } from "./is-object.ts";
import { nearestName } from "./nearest-name.ts";
import { describeError, tagOf, textOf } from "./user-values.ts";

/**
 * Every code that curfew throws or stores on a job; docs/errors.md is generated from this table. `programmer`: thrown
 * at once where the mistake was made. `operating`: something outside the program failed. `verdict`: stored on a job,
 * never thrown.
 */
export const ERRORS = {
  invalid_duration: { kind: "programmer", says: "is not a valid duration" },
  invalid_instant: { kind: "programmer", says: "is not a valid instant" },
  invalid_timeout: { kind: "programmer", says: "is not a valid timeout" },
  invalid_when: { kind: "programmer", says: "is not a valid time or delay" },
  invalid_cron: { kind: "programmer", says: "is not a valid cron expression" },
  invalid_calendar: { kind: "programmer", says: "is not valid in a business calendar" },
  unknown_calendar: { kind: "programmer", says: "is not a known business calendar" },
  never_opens: { kind: "programmer", says: "has no working day within ten years" },
  unknown_zone: { kind: "programmer", says: "is not a known time zone" },
  no_such_time: { kind: "programmer", says: "is skipped or repeated by a clock change in its time zone" },
  timeouts_contradict: { kind: "programmer", says: "contradicts another timeout" },
  never_runs: {
    kind: "programmer",
    says: "ends at or before the job's scheduled time, so the job could never run",
  },
  invalid_retry: { kind: "programmer", says: "is not a valid retry policy" },
  invalid_name: { kind: "programmer", says: "is not a valid name" },
  invalid_option: { kind: "programmer", says: "is not a valid value here" },
  two_homes: {
    kind: "programmer",
    says: "would put the job into two homes of this store, which cannot keep both promises",
  },
  unknown_option: { kind: "programmer", says: "is not an option" },
  invalid_definition: { kind: "programmer", says: "is not a definition made by defineJob" },
  invalid_schema: { kind: "programmer", says: "is not a schema that the registry takes" },
  invalid_version: { kind: "programmer", says: "is not a valid version of a schema" },
  incompatible_schema: {
    kind: "operating",
    says: "The schema breaks the compatibility that its type asks for",
  },
  known_schema: { kind: "operating", says: "This version of the schema, or its uri, is registered already" },
  schema_mismatch: {
    kind: "operating",
    says: "The arguments do not fit the registered schema of the job's type",
  },
  invalid_workflow: { kind: "programmer", says: "is not a valid workflow" },
  invalid_saga: { kind: "programmer", says: "is not a saga made by defineSaga" },
  missing_handler: { kind: "programmer", says: "is declared but has no handler" },
  missing_correlation: { kind: "programmer", says: "is declared but does not say which saga it belongs to" },
  invalid_correlation: { kind: "programmer", says: "does not name a saga" },
  unknown_message: { kind: "programmer", says: "is not a message of this saga" },
  unknown_timeout: { kind: "programmer", says: "is not a timeout of this saga" },
  no_next_state: { kind: "programmer", says: "is not a next state, so nothing was saved" },
  invalid_saga_state: { kind: "programmer", says: "does not fit the saga's state schema" },
  identity_changed: { kind: "programmer", says: "is not the id of this saga, so nothing was saved" },
  unknown_undo: { kind: "programmer", says: "is not an undo of this saga" },
  compensating: { kind: "programmer", says: "cannot do this while it is compensated" },
  key_missing: {
    kind: "operating",
    says: "The document is encrypted with a key that this process does not have",
  },
  unsealed: { kind: "operating", says: "The document cannot be decrypted" },
  too_many_pending: { kind: "programmer", says: "exceeds the limit of pending timeouts" },
  no_sender: { kind: "programmer", says: "has no sender to reply to" },
  step_over: { kind: "programmer", says: "was called after its handler had ended" },
  newer_state: { kind: "operating", says: "A newer version of the saga wrote its state" },
  invalid_module: { kind: "operating", says: "The module of a sandbox is not a processor of its definition" },
  load_timeout: { kind: "operating", says: "The module of a sandbox was not loaded in time" },
  invalid_payload: { kind: "programmer", says: "does not fit the definition's schema" },
  invalid_result: { kind: "programmer", says: "does not fit the definition's result schema" },
  not_json: { kind: "programmer", says: "cannot be stored as JSON" },
  too_large: { kind: "programmer", says: "is larger than the limit" },
  invalid_priority: { kind: "programmer", says: "is not a valid priority" },
  invalid_limit: { kind: "programmer", says: "is not a valid limit" },
  closed: { kind: "operating", says: "The engine is closed" },
  concurrency: { kind: "operating", says: "The caller does not hold the lease on the timeout" },
  known_cron: { kind: "operating", says: "A cron with this name already exists" },
  known_id: { kind: "operating", says: "A timeout with this id already exists" },
  not_found: { kind: "operating", says: "The job or cron does not exist" },
  duplicate_job: { kind: "operating", says: "A job with the same unique key exists" },
  invalid_state: { kind: "operating", says: "The job's state does not allow this" },
  unknown_store: { kind: "programmer", says: "is not a known store" },
  store_failed: { kind: "operating", says: "The store did not answer" },
  server_failed: { kind: "operating", says: "The server did not answer" },
  server_refused: { kind: "operating", says: "The server refused the request" },
  not_over_http: { kind: "programmer", says: "cannot be sent over HTTP" },
  missing_package: { kind: "operating", says: "An optional package is not installed" },
  unsupported_node: { kind: "operating", says: "This version of Node is too old" },
  result_timeout: { kind: "operating", says: "The job did not end within the time given" },
  result_gone: { kind: "operating", says: "The job ended, and its result was not kept" },
  job_failed: { kind: "operating", says: "The job ended without a result" },
  workflow_failed: { kind: "operating", says: "The workflow ended without success" },
  parent_results_too_large: {
    kind: "verdict",
    says: "The results of the steps before it are too large to be passed on",
  },
  timeout: { kind: "verdict", says: "The attempt ran longer than its attempt timeout" },
  total_timeout: { kind: "verdict", says: "The job used up its total budget" },
  enqueue_ttl_expired: { kind: "verdict", says: "The job was not started within its wait timeout" },
  stalled: { kind: "verdict", says: "The attempt sent no heartbeat within its heartbeat timeout" },
  visibility_timeout: {
    kind: "verdict",
    says: "A remote worker did not report within the visibility timeout that it named",
  },
  killed: { kind: "verdict", says: "The sandbox died during the attempt" },
  shutdown: { kind: "verdict", says: "The worker shut down and released the job" },
  handler_error: { kind: "verdict", says: "The handler threw an error that has no code" },
  discarded_by_handler: { kind: "verdict", says: "The handler threw Discard" },
  too_many_returns: {
    kind: "verdict",
    says: "The job was released or snoozed too many times without ending",
  },
  rate_limited: {
    kind: "verdict",
    says: "The job's limit was reached, and its onLimit says to drop it",
  },
  tenant_limit: { kind: "operating", says: "The tenant has reached one of its limits" },
  queue_full: { kind: "operating", says: "The queue has as many waiting jobs as it may hold" },
  cancelled: { kind: "verdict", says: "The job was cancelled" },
} as const satisfies Record<string, { kind: "programmer" | "operating" | "verdict"; says: string }>;

export type ErrorCode = keyof typeof ERRORS;

/**
 * An error that curfew throws. `code` is stable. `field` names the option or field that was refused, if there is one.
 */
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

/** A value for a message: recognisable, on one line, at most 120 characters. */
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
  text ??= tagOf(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** A programmer error in the common form: field, value, problem, fix. */
export function refuse(
  code: ErrorCode,
  field: string,
  value: unknown,
  fix: string,
  caught?: { readonly cause: unknown },
): CurfewError {
  return new CurfewError(code, `${field}: ${show(value)} ${ERRORS[code].says}; ${fix}`, { field, ...caught });
}

/**
 * Like `refuse`, for a number out of its range: a RangeError, as JavaScript itself would throw, with code and field.
 */
export function refuseRange(
  code: ErrorCode,
  field: string,
  value: unknown,
  fix: string,
): RangeError & { readonly code: ErrorCode; readonly field: string } {
  const { message } = refuse(code, field, value, fix);
  return Object.assign(new RangeError(message), { code, field });
}

/** Like `refuse`, for a value of the wrong kind: a TypeError, as JavaScript itself would throw, with code and field. */
export function refuseType(
  code: ErrorCode,
  field: string,
  value: unknown,
  fix: string,
): TypeError & { readonly code: ErrorCode; readonly field: string } {
  const { message } = refuse(code, field, value, fix);
  return Object.assign(new TypeError(message), { code, field });
}

/** The name and message of a thrown value, cut to `most` characters. */
export function errorText(error: unknown, most: number): string {
  const described = describeError(error);
  return (described ? `${described.name}: ${described.message}` : textOf(error)).slice(0, most);
}

/** Refuses a number that is not whole or not from 1 to `most`. */
export function checkCount(count: unknown, field: string, most: number): number {
  if (typeof count === "number" && Number.isInteger(count) && count >= 1 && count <= most) return count;
  throw refuse("invalid_limit", field, count, `use a whole number from 1 to ${most}`);
}

/** Options are few and alike, so fewer mistakes are forgiven than in names of users, except for the case. */
function nearestOption(key: string, known: readonly string[]): string | undefined {
  const same = known.find((name) => name.toLowerCase() === key.toLowerCase());
  return same ?? nearestName(key, known, Math.min(2, Math.floor(key.length / 3)));
}

/** A name of a cron or a calendar. */
export function checkName(name: unknown): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check looks for control characters.
  if (typeof name === "string" && name.length > 0 && name.length <= 255 && !/[\u0000-\u001f]/.test(name))
    return name;
  throw refuse("invalid_name", "name", name, "use a text of 1 to 255 characters");
}

export function checkFlag(value: unknown, field: string): boolean {
  if (typeof value === "boolean") return value;
  throw refuse("invalid_option", field, value, "write true or false");
}

/** Refuses unknown keys. JavaScript callers may pass them; TypeScript would not compile. */
export function refuseUnknownKeys(value: unknown, field: string, known: readonly string[]): void {
  if (!isObject(value)) throw refuse("invalid_option", field, value, "write an object");
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const nearest = nearestOption(key, known);
    const meant = nearest === undefined ? "" : `did you mean ${nearest}? `;
    const at = field === "" ? key : `${field}.${key}`;
    throw refuse("unknown_option", at, key, `${meant}use one of ${known.join(", ")}`);
  }
}
