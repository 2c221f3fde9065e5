import { writeSync } from "node:fs";
import { realSystem } from "../../engine/runtime/real-system.ts";
import type { Logger } from "../../ports/log.ts";
import type { LogLevel } from "./log-levels.ts";
import { dim, paint, printable } from "./paint.ts";

export interface LogOutputOptions {
  readonly json?: boolean;
  readonly logLevel: LogLevel;
}

/** Logs, and lines for people unless `--json` is given. */
export interface LogOutput {
  readonly logger: Logger;
  /** Prints lines for people. With `--json` it logs the fields instead, so that a program reads one format only. */
  say(lines: string, fields: object, message: string): void;
}

export function createLogOutput({ json = false, logLevel }: LogOutputOptions): LogOutput {
  if (!json) {
    const logger = createLogger(logLevel, (line) => void process.stderr.write(readable(line)));
    return { logger, say: (lines) => void process.stdout.write(`${lines}\n`) };
  }
  // Written synchronously: the last lines of a process that crashed matter most.
  const logger = createLogger(logLevel, (line) => writeAll(1, `${JSON.stringify(line)}\n`));
  return { logger, say: (_lines, fields, message) => logger.info(fields, message) };
}

interface Line {
  readonly level: number;
  /** As in `2030-01-31T17:00:00.000Z`. */
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** The numbers and the names of fields are those of pino, which tools for logs know. */
const NUMBERS: Readonly<Record<LogLevel, number>> = { debug: 20, info: 30, warn: 40, error: 50 };

function createLogger(lowest: LogLevel, write: (line: Line) => void): Logger {
  const at = (level: keyof Logger) => (fields: object, msg: string) => {
    if (NUMBERS[level] < NUMBERS[lowest]) return;
    const time = new Date(realSystem.wall()).toISOString();
    const plain = Object.entries(fields).map(([key, value]) => [key, asPlain(value)]);
    write({ level: NUMBERS[level], time, ...Object.fromEntries(plain), msg });
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** JSON.stringify would write an Error as {}, and fails at a bigint. */
function asPlain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (!(value instanceof Error)) return value;
  const { name, message, stack, cause, ...fields } = value;
  return {
    type: value.constructor.name,
    message,
    stack,
    ...fields,
    ...(cause !== undefined && { cause: asPlain(cause) }),
  };
}

/** A pipe that is full takes a part of the text, or nothing yet. */
function writeAll(file: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(file, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

const LEVELS: Readonly<Record<number, readonly [name: string, colour: "dim" | "green" | "yellow" | "red"]>> =
  {
    20: ["debug", "dim"],
    30: ["info", "green"],
    40: ["warn", "yellow"],
    50: ["error", "red"],
  };

/** One line for people. */
function readable({ level, time, msg, ...fields }: Line): string {
  const [name, colour] = LEVELS[level] ?? ["log", "dim"];
  const clock = time.slice(11, 19);
  const rest = Object.entries(fields).map(([key, value]) => `${key}=${shown(value)}`);
  const parts = [dim(clock, process.stderr), paint(colour, name.padEnd(5), process.stderr), printable(msg)];
  return `${[...parts, dim(rest.join(" "), process.stderr)].join(" ").trimEnd()}\n`;
}

function shown(value: unknown): string {
  if (typeof value === "object" && value !== null && "message" in value)
    return printable(String(value.message));
  return printable(typeof value === "string" ? value : (JSON.stringify(value) ?? String(value)));
}
