import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Place } from "./contender.ts";

/** What a worker in a process of its own does with its jobs. */
export type RemoteHandler = "tell" | "recovery";

/** A handler was entered or left. `at` is monotonic, in milliseconds, and the same clock in all processes. */
export interface Told {
  readonly n: number;
  readonly at: number;
  readonly is: "started" | "ended";
}

export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function sleep(duration: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, duration));
}

/** A worker of a contender in a process of its own: opened at once, at work when `begin` is called. */
export class RemoteWorker {
  readonly #child: ChildProcess;
  readonly #onTold: (told: Told) => void;
  #next: (() => void) | undefined;

  constructor(key: string, place: Place, handler: RemoteHandler, onTold: (told: Told) => void) {
    this.#onTold = onTold;
    this.#child = fork(join(import.meta.dirname, "remote-main.ts"), [key, place, handler], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#child.on("message", (message) => {
      if (message === "ok") this.#next?.();
      else this.#onTold(message as Told);
    });
  }

  opened(): Promise<void> {
    return this.#answered();
  }

  begin(): Promise<void> {
    this.#child.send("begin");
    return this.#answered();
  }

  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    await ended;
  }

  #answered(): Promise<void> {
    return new Promise((resolve, reject) => {
      const failed = () => reject(new Error("a worker process ended by itself"));
      this.#child.once("exit", failed);
      this.#next = () => {
        this.#child.off("exit", failed);
        resolve();
      };
    });
  }
}
