import type { Silence } from "./proc.ts";
import type { Order, Report } from "./protocol.ts";
import type { Look } from "./stack.ts";

/** How a sandbox ended, as the operating system tells it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The error that nobody caught inside, if that was the cause. */
  readonly error?: unknown;
}

export interface CarrierEvents {
  onReport(report: Report): void;
  /** A line that was written to stdout or stderr. */
  onLine(stream: "stdout" | "stderr", line: string): void;
  /** It said something that no sandbox says; whoever hears this ends it. */
  onFlaw(because: string): void;
  /** It is gone, and everything that it had said before has been told. */
  onExit(exit: Exit): void;
}

/** What carries a sandbox: a process or a thread, with a way to talk to it and to end it. */
export interface Carrier {
  send(order: Order): void;
  /** Ends it at once, with all that it started where the system can do that. */
  kill(): void;
  /** Bytes of memory it takes, where that can be known from outside. */
  memory(): number | undefined;
  /** Where its JavaScript stands, asked from outside. */
  capture(limit: number): Promise<Look>;
  silence(): Silence;
}

export interface CarrierOptions {
  /** The most megabytes of its heap, and of its memory as a whole. */
  readonly memory: number;
  /** Names of environment variables that it may see. */
  readonly env: readonly string[];
  /** Flags of Node; `--permission` among them switches the capture of stacks off. */
  readonly flags: readonly string[];
  readonly captures: boolean;
}

const ALLOWED = ["PATH", "HOME", "TZ", "LANG", "NODE_ENV"];

/** The allow-listed environment: nothing that was not named, so no credentials of the store. */
export function environmentOf(names: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of [...ALLOWED, ...names]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
