import { CurfewError } from "../../core/errors.ts";
import type { Logger } from "../../ports/log.ts";

/**
 * The default: warnings and errors, a line each on standard error. They tell of what nobody would want to miss, such as
 * a store that fails, an event loop that was blocked, or a store that forgets everything with the process.
 */
export function consoleLogger(write: (line: string) => void = console.error): Logger {
  const line = (level: string) => (fields: object, message: string) =>
    write(`curfew ${level}: ${message}${shown(fields)}`);
  return { debug() {}, info() {}, warn: line("warning"), error: line("error") };
}

const LONGEST = 1_000;

function shown(fields: object): string {
  const text = JSON.stringify(fields, (_key, value) => (value instanceof Error ? said(value) : value));
  return text === "{}" ? "" : ` ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`;
}

function said(error: Error): string {
  const code = error instanceof CurfewError ? ` (${error.code})` : "";
  const cause = error.cause instanceof Error ? `, because ${said(error.cause)}` : "";
  return `${error.name}${code}: ${error.message}${cause}`;
}
