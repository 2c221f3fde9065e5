import { errorInput } from "../../core/job/error-input.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import { type AbortReason, Discard, Snooze, snoozedUntil, TimeoutError } from "../../core/job/reasons.ts";
import { type Schema, toJsonText, validate } from "../../core/schema.ts";
import { SandboxKilled } from "../../ports/sandbox.ts";
import type { AttemptParts } from "../context.ts";

type Judged = Extract<JobEvent, { type: "succeed" | "snooze" }>;

/** What a returned value means for its job; throws where it does not fit the definition. */
export function verdictOfReturn(
  value: unknown,
  schema: Schema | undefined,
  parts: AttemptParts,
  signalled: boolean,
): Judged | Promise<Judged> {
  if (value instanceof Snooze) return { type: "snooze", dueAt: snoozedUntil(value, parts.clock.anchor()) };
  if (value === undefined && !schema) return { type: "succeed", signalled };
  const succeed = (result: unknown): Judged => {
    if (result === undefined) return { type: "succeed", signalled };
    return { type: "succeed", signalled, result: toJsonText(result, "result", parts.documentLimit) };
  };
  const checked = schema ? validate(schema, value, "result", "invalid_result") : value;
  return checked instanceof Promise ? checked.then(succeed) : succeed(checked);
}

/** What a thrown error means. After our own signal it is that timeout, with what was thrown as its cause. */
export function verdictOfThrow(error: unknown, signalled: boolean): Extract<JobEvent, { type: "fail" }> {
  const cause = signalled && error instanceof TimeoutError && error.cause !== undefined ? error.cause : error;
  const input = errorInput(cause);
  return {
    type: "fail",
    error: cause instanceof SandboxKilled ? { ...input, details: cause.details } : input,
    signalled,
    discard: error instanceof Discard,
  };
}

/** The TimeoutError that an error thrown after our signal stands for, or the error itself (SEMANTICS 3.5). */
export function classified(reason: AbortReason | undefined, error: unknown): unknown {
  if (!(reason instanceof TimeoutError) || error instanceof TimeoutError) return error;
  const { kind, limit, elapsed, deadline } = reason;
  return new TimeoutError(kind, limit, elapsed, deadline, error);
}
