import { CommanderError } from "commander";
import { CurfewError, ERRORS } from "../core/errors.ts";
import { CommandFailed, EXITS, type Exit } from "./exit.ts";

/** How errors are printed: a line for people, or one JSON document under `--json`. */
export interface ErrorStyle {
  readonly isJson: boolean;
}

/** Prints an error on standard error and gives the exit code. Only a bug in curfew prints a stack. */
export function reportError(error: unknown, style: ErrorStyle): number {
  if (error instanceof CommanderError) return reportUsage(error, style);
  if (error instanceof CommandFailed) return say(error.exit, error.message, style);
  if (error instanceof CurfewError) return say(exitOf(error), error.message, style);
  if (style.isJson) return say("failed", error instanceof Error ? String(error.stack) : String(error), style);
  console.error(error);
  return EXITS.failed.code;
}

/** Commander has printed the message for people. Help is not a failure; if help was the answer, it is enough. */
function reportUsage({ exitCode, code, message }: CommanderError, style: ErrorStyle): number {
  if (exitCode === 0) return EXITS.ok.code;
  if (style.isJson && code !== "commander.help") say("usage", message.replace(/^error: /, ""), style);
  return EXITS.usage.code;
}

function exitOf({ code }: CurfewError): Exit {
  if (code === "store_failed" || code === "server_failed") return "unreachable";
  return ERRORS[code].kind === "programmer" ? "usage" : "failed";
}

/** A command that failed for several reasons has them on lines of their own. */
function say(exit: Exit, text: string, { isJson }: ErrorStyle): number {
  const message = isJson ? text.replaceAll("\ncurfew: ", "\n") : text;
  if (message !== "")
    process.stderr.write(
      isJson ? `${JSON.stringify({ error: { code: exit, message } })}\n` : `curfew: ${message}\n`,
    );
  return EXITS[exit].code;
}

const FAULTS: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EIO: "the device failed",
  EBADF: "it is closed",
};

/**
 * Ends the process at the first failed write to standard output: what follows would be lost, too. A reader that leaves,
 * as in `curfew ls | head`, is no failure.
 */
export function endAtFailedWrite(style: ErrorStyle): void {
  process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") process.exit(EXITS.ok.code);
    process.exit(say("failed", `cannot write the output: ${FAULTS[code ?? ""] ?? message}`, style));
  });
}
