import { show } from "../errors.ts";
import type { ErrorInput } from "./decision.ts";
import type { ErrorCause } from "./job.ts";

/** Enough of a stack to find the line. One error must not fill a row. */
const STACK_LIMIT = 8_000;
const MESSAGE_LIMIT = 4_000;

/**
 * Anything that was thrown, in the form that a job stores. `type` is the error's name, `code` its code or
 * `handler_error`.
 */
export function errorInput(thrown: unknown): ErrorInput {
  const { type, message, stack } = describe(thrown);
  const cause = thrown instanceof Error && thrown.cause !== undefined ? causeOf(thrown.cause) : undefined;
  return {
    type,
    code: codeOf(thrown) ?? "handler_error",
    message,
    ...(stack && { stack }),
    ...(cause && { cause }),
  };
}

function causeOf(thrown: unknown): ErrorCause {
  const { type, message, stack } = describe(thrown);
  const code = codeOf(thrown);
  return { type, message, ...(code !== undefined && { code }), ...(stack && { stack }) };
}

function describe(thrown: unknown): { type: string; message: string; stack?: string } {
  if (!(thrown instanceof Error)) return { type: "NotAnError", message: show(thrown) };
  const type = typeof thrown.name === "string" && thrown.name !== "" ? thrown.name.slice(0, 255) : "Error";
  const stack = typeof thrown.stack === "string" ? thrown.stack.slice(0, STACK_LIMIT) : undefined;
  return { type, message: String(thrown.message).slice(0, MESSAGE_LIMIT), ...(stack && { stack }) };
}

function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" && thrown.code !== "" ? thrown.code.slice(0, 255) : undefined;
}
