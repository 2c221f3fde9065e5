import type { Silence } from "./proc.ts";
import type { Order, Report } from "./protocol.ts";
import type { Look } from "./stack.ts";

/** How a sandbox ended, according to the operating system. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The uncaught error that ended it, if there was one. */
  readonly error?: unknown;
  /** Whether everything that it reported has been delivered. */
  readonly isHeardOut: boolean;
}

export interface CarrierEvents {
  onReport(report: Report): void;
  /** A line on stdout or stderr. */
  onLine(stream: "stdout" | "stderr", line: string): void;
  /** It sent something that no sandbox sends. The receiver ends it. */
  onFlaw(because: string): void;
  /** It exits, so it gets no other attempt. Its last reports and `onExit` follow. */
  onExiting(): void;
  /** It is gone. */
  onExit(exit: Exit): void;
}

/** What carries a sandbox: a process or a thread, with a way to talk to it and to end it. */
export interface Carrier {
  send(order: Order): void;
  /** Ends it at once, with everything that it started if the system can do that. */
  kill(): void;
  /** The bytes of memory that it uses, if that is known from outside. */
  memory(): number | undefined;
  /** Where its JavaScript is, read from outside. */
  capture(limit: number): Promise<Look>;
  silence(): Silence;
}

export interface CarrierOptions {
  /** The most megabytes of its heap, and of its total memory. */
  readonly memory: number;
  /** The names of environment variables that it may see. */
  readonly env: readonly string[];
  /** Flags of Node. `--permission` among them turns off the capture of stacks. */
  readonly flags: readonly string[];
  readonly captures: boolean;
  /** The command that starts Node in a process under it; empty to start Node itself. */
  readonly command: readonly string[];
}

const ALLOWED = ["PATH", "HOME", "TZ", "LANG", "NODE_ENV"];

/** The allowed environment: only variables that were named, so no credentials of the store. */
export function environmentOf(names: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of [...ALLOWED, ...names]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
