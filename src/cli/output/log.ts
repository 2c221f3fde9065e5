import { type Logger, pino } from "pino";
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
  const options = {
    level: logLevel,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    // JSON.stringify would write an Error as {}.
    serializers: { error: pino.stdSerializers.err },
  };
  if (json) {
    // Written synchronously: the last lines of a process that crashed matter most.
    const logger = pino(options, pino.destination({ dest: 1, sync: true }));
    return { logger, say: (_lines, fields, message) => logger.info(fields, message) };
  }
  const logger = pino(options, { write: (line) => void process.stderr.write(readable(line)) });
  return { logger, say: (lines) => void process.stdout.write(`${lines}\n`) };
}

const LEVELS: Readonly<Record<number, readonly [name: string, colour: "dim" | "green" | "yellow" | "red"]>> =
  {
    20: ["debug", "dim"],
    30: ["info", "green"],
    40: ["warn", "yellow"],
    50: ["error", "red"],
  };

/** One line for people from one line of JSON. */
function readable(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const [name, colour] = LEVELS[level as number] ?? ["log", "dim"];
  const clock = String(time).slice(11, 19);
  const rest = Object.entries(fields).map(([key, value]) => `${key}=${shown(value)}`);
  const parts = [
    dim(clock, process.stderr),
    paint(colour, name.padEnd(5), process.stderr),
    printable(String(msg)),
  ];
  return `${[...parts, dim(rest.join(" "), process.stderr)].join(" ").trimEnd()}\n`;
}

function shown(value: unknown): string {
  if (typeof value === "object" && value !== null && "message" in value)
    return printable(String(value.message));
  return printable(typeof value === "string" ? value : (JSON.stringify(value) ?? String(value)));
}
