import { errorInput } from "../../core/job/decide/error-input.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import { pathsWithin } from "../../core/job/documents/redaction.ts";
import type { AnyDefinition } from "../../core/job/job-definition.ts";
import { type AbortReason, Discard, Snooze, snoozedUntil, TimeoutError } from "../../core/job/reasons.ts";
import { toJsonText, validate } from "../../core/schema.ts";
import { isInstance } from "../../core/user-values.ts";
import { SandboxKilled } from "../../ports/sandbox.ts";
import type { AttemptParts } from "../context.ts";

type ReturnVerdict = Extract<JobEvent, { type: "succeed" | "snooze" }>;

/** The verdict of a returned value. Throws if the value does not match the schema of the definition. */
export function verdictOfReturn(
  value: unknown,
  { result: schema, redact }: Pick<AnyDefinition, "result" | "redact">,
  context: AttemptParts,
  signalled: boolean,
): ReturnVerdict | Promise<ReturnVerdict> {
  if (value instanceof Snooze)
    return { type: "snooze", dueAt: snoozedUntil(value, context.clock.anchor()), signalled };
  const { documentLimit } = context;
  if (!schema) return succeeded(value, signalled, documentLimit);
  const checked = validate(schema, value, "result", "invalid_result", pathsWithin(redact, "result"));
  return checked instanceof Promise
    ? successOf(checked, signalled, documentLimit)
    : succeeded(checked, signalled, documentLimit);
}

async function successOf(
  result: Promise<unknown>,
  signalled: boolean,
  documentLimit: number,
): Promise<ReturnVerdict> {
  return succeeded(await result, signalled, documentLimit);
}

function succeeded(result: unknown, signalled: boolean, documentLimit: number): ReturnVerdict {
  if (result === undefined) return { type: "succeed", signalled };
  return { type: "succeed", signalled, result: toJsonText(result, "result", documentLimit) };
}

/** The verdict of a thrown error. After our own timeout signal it is that timeout, with the error as its cause. */
export function verdictOfThrow(error: unknown, signalled: boolean): Extract<JobEvent, { type: "fail" }> {
  const cause =
    signalled && isInstance(error, TimeoutError) && error.cause !== undefined ? error.cause : error;
  const input = errorInput(cause);
  return {
    type: "fail",
    error: isInstance(cause, SandboxKilled) ? { ...input, details: cause.details } : input,
    signalled,
    discard: isInstance(error, Discard),
  };
}

/** The TimeoutError that an error thrown after our signal stands for, or the error itself (SEMANTICS 3.5). */
export function classified(reason: AbortReason | undefined, error: unknown): unknown {
  if (!(reason instanceof TimeoutError) || isInstance(error, TimeoutError)) return error;
  const { kind, limit, elapsed, deadline } = reason;
  return new TimeoutError(kind, limit, elapsed, deadline, error);
}
