import { show } from "../../errors.ts";
import { codeOf, describeError } from "../../user-values.ts";
import type { ErrorCause } from "../job.ts";
import type { ErrorInput } from "./decision.ts";

/** Enough of a stack to find the line. One error must not fill a row. */
const STACK_LIMIT = 8_000;
const MESSAGE_LIMIT = 4_000;
const NAME_LIMIT = 255;

/**
 * Anything that was thrown, in the form that a job stores. `type` is the error's name, `code` its code or
 * `handler_error`.
 */
export function errorInput(thrown: unknown): ErrorInput {
  const { cause, ...error } = describe(thrown);
  return {
    ...error,
    code: error.code ?? "handler_error",
    ...(cause !== undefined && { cause: causeOf(cause) }),
  };
}

function causeOf(thrown: unknown): ErrorCause {
  const { cause: _deeper, ...error } = describe(thrown);
  return error;
}

function describe(thrown: unknown): ErrorCause & { readonly cause?: unknown } {
  const error = describeError(thrown);
  const code = error ? error.code : codeOf(thrown);
  return {
    type: error ? error.name.slice(0, NAME_LIMIT) : "NotAnError",
    message: error ? error.message.slice(0, MESSAGE_LIMIT) : show(thrown),
    ...(code !== undefined && { code: code.slice(0, NAME_LIMIT) }),
    ...(error?.stack && { stack: error.stack.slice(0, STACK_LIMIT) }),
    ...(error?.cause !== undefined && { cause: error.cause }),
  };
}
