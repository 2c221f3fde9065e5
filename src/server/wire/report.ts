import type { ErrorInput } from "../../core/job/decide/decision.ts";
import { isSignalled, isTooLate, type Sender } from "../../core/job/decide/holder.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import type { JobRow } from "../../core/job/job.ts";
import { SHUTDOWN } from "../../core/job/reasons.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { readInstant } from "../../ojs/wire-durations.ts";
import type { Identity } from "../access/auth.ts";
import { refusedField } from "../http/http-error.ts";
import type { FailBody } from "./schemas.ts";

const MESSAGE_LIMIT = 4_000;
const STACK_LIMIT = 8_000;
/** Characters of the JSON of an error's details. A job keeps several errors. */
const DETAILS_LIMIT = 64_000;

interface SenderFields {
  readonly fence?: number | null | undefined;
  readonly worker_id?: string | null | undefined;
  readonly signalled?: boolean | null | undefined;
}

/** The sender of a report. Without keys, every caller is the same. The option `requireFence` refuses reports without a fence. */
export function senderOf(
  said: SenderFields,
  identity: Identity,
  { requiresFence }: { readonly requiresFence: boolean },
): Sender {
  const fence = said.fence ?? undefined;
  if (fence === undefined && requiresFence)
    throw refusedField("fence", "it is missing; send the fence of the fetched job");
  return { fence, worker: said.worker_id ?? undefined, caller: callerOf(identity) };
}

/** The name of the caller's key; undefined on a server without keys. */
export function callerOf({ name, by }: Identity): string | undefined {
  return by === "nobody" ? undefined : name;
}

/** The event that a report is, once the row is read. */
type EventOf = (row: JobRow, now: Instant) => JobEvent;

/** Reads an ACK. */
export function readSuccess(body: SenderFields & { readonly result?: unknown }, limit: number): EventOf {
  const result = body.result === undefined ? undefined : toJsonText(body.result, "result", limit);
  return (row, now) => ({
    type: "succeed",
    signalled: isSignalled(row, now, body.signalled ?? undefined),
    ...(result !== undefined && { result }),
  });
}

/** Reads a NACK: a failure, a job given back, or a snooze. */
export function readFailure(body: FailBody, now: Instant): EventOf {
  if (typeof body.snooze_until === "string") {
    const dueAt = readInstant(body.snooze_until, now, "snooze_until");
    return (row, at) => ({
      type: "snooze",
      dueAt: Math.max(dueAt, at),
      signalled: isSignalled(row, at, body.signalled ?? undefined),
    });
  }
  const error = readError(body);
  if (body.requeue) return readRelease(body, error);
  if (body.fence != null && (body.forced || body.stalled)) return readVerdict(body, error);
  // These codes override the retry policy (retry, section 7).
  const { code } = error;
  return (row, at) => ({
    type: "fail",
    error,
    signalled: isSignalled(row, at, body.signalled ?? undefined),
    discard: body.discard === true || code === "DISCARD",
    deadLetter: code === "DEAD_LETTER",
    insist: code === "RETRY",
    final: code === "FAIL" || (body.error?.retryable === false && code !== "RETRY"),
  });
}

/** A job given back. `error: null` means that nothing failed. */
function readRelease(body: FailBody, error: ErrorInput): EventOf {
  const delay = body.delay_ms ?? undefined;
  const kept = body.error ? { ...error, type: "shutdown", details: { code: error.code } } : SHUTDOWN;
  return () => ({
    type: "release",
    ...(body.error !== null && { error: kept }),
    ...(delay !== undefined && { delay }),
  });
}

/** A worker ended the attempt itself: at the hard deadline, or because the handler stalled (SEMANTICS 3.7). */
function readVerdict(body: FailBody, error: ErrorInput): EventOf {
  const where = error.stack === undefined ? {} : { stack: error.stack };
  if (body.stalled) return () => ({ type: "stall", witnessed: true, ...where });
  return (row, now) =>
    isTooLate(row, now)
      ? { type: "expire", forced: true, ...where }
      : { type: "fail", error, signalled: isSignalled(row, now) };
}

/** A verdict must not be lost for its details, so large ones are left out. */
function boundedDetails(details: Json): Json {
  return JSON.stringify(details).length <= DETAILS_LIMIT
    ? details
    : { omitted: `more than ${DETAILS_LIMIT} characters` };
}

/** Clients send a type, a code or both; each stands in for the other. A class in the details is a better type than a code. */
function readError({ error }: FailBody): ErrorInput {
  const details = error?.details;
  const errorClass =
    typeof details === "object" && details !== null && !Array.isArray(details)
      ? (details as { error_class?: unknown }).error_class
      : undefined;
  const code = error?.code || error?.type || "handler_error";
  const type = error?.type || (typeof errorClass === "string" && errorClass.slice(0, 255)) || code;
  const cause = error?.cause;
  const trace = error?.stack ?? error?.backtrace;
  const stack = Array.isArray(trace) ? trace.join("\n") : trace;
  return {
    type,
    code,
    message: (error?.message ?? "The handler failed").slice(0, MESSAGE_LIMIT),
    ...(details != null && { details: boundedDetails(details as Json) }),
    ...(stack && { stack: stack.slice(0, STACK_LIMIT) }),
    ...(cause && {
      cause: {
        type: cause.type ?? "Error",
        message: (cause.message ?? "").slice(0, MESSAGE_LIMIT),
        ...(cause.code && { code: cause.code }),
        ...(cause.stack && { stack: cause.stack.slice(0, STACK_LIMIT) }),
      },
    }),
  };
}
