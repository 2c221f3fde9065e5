import { CurfewError } from "../../core/errors.ts";
import { describeError, isInstance, tagOf } from "../../core/user-values.ts";
import type { Logger } from "../../ports/log.ts";

/**
 * The default logger writes warnings and errors to standard error, one line each. Examples: the store fails, the event
 * loop was blocked, the store is not durable.
 */
export function consoleLogger(write: (line: string) => void = console.error): Logger {
  const line = (level: string) => (fields: object, message: string) =>
    write(`curfew ${level}: ${message}${formatFields(fields)}`);
  return { debug() {}, info() {}, warn: line("warning"), error: line("error") };
}

const LONGEST = 1_000;
/** An error may be its own cause. */
const DEEPEST_CAUSE = 5;

function formatFields(fields: object): string {
  const text = JSON.stringify(
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, printable(value)])),
  );
  return text === "{}" ? "" : ` ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`;
}

/** A value that JSON can show: an error as its text, and a value that cannot be read as its kind. */
function printable(value: unknown): unknown {
  const error = formatError(value, 0);
  if (error !== undefined) return error;
  try {
    const text = JSON.stringify(value, (_key, inner) => formatError(inner, 0) ?? inner);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return tagOf(value);
  }
}

function formatError(value: unknown, depth: number): string | undefined {
  const error = describeError(value);
  if (!error) return undefined;
  const code = isInstance(value, CurfewError) ? ` (${value.code})` : "";
  const cause = depth < DEEPEST_CAUSE ? formatError(error.cause, depth + 1) : undefined;
  return `${error.name}${code}: ${error.message}${cause === undefined ? "" : `, because ${cause}`}`;
}
