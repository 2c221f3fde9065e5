import { CurfewError } from "../../core/errors.ts";
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

function formatFields(fields: object): string {
  const text = JSON.stringify(fields, (_key, value) => (value instanceof Error ? formatError(value) : value));
  return text === "{}" ? "" : ` ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`;
}

function formatError(error: Error): string {
  const code = error instanceof CurfewError ? ` (${error.code})` : "";
  const cause = error.cause instanceof Error ? `, because ${formatError(error.cause)}` : "";
  return `${error.name}${code}: ${error.message}${cause}`;
}
