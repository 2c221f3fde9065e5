import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startFile } from "../ports/start-file.ts";

/** The path of a module that a process or a thread of a sandbox starts with. */
export function entryOf(name: string): string {
  return fileURLToPath(startFile(`sandbox/${name}`));
}

/** Flags of a process whose debugger nobody opens with SIGUSR1. */
export const NO_DEBUGGER = ["--disable-sigusr1"];

const MOST_RESTARTS = 100;

/**
 * The parent's side of the reaper process, one for all sandboxes of this process. It runs while it has holders.
 * Without process groups (Windows) it could kill nothing and is not started.
 */
class Reaper {
  #process: ChildProcess | undefined;
  #holders = 0;
  #groups = new Set<number>();
  #restarts = 0;

  hold(): void {
    this.#holders += 1;
    if (process.platform !== "win32") this.#process ??= this.#start();
  }

  /** Resolves when there is no holder left and the process is gone. */
  async release(): Promise<void> {
    this.#holders -= 1;
    if (this.#holders > 0 || !this.#process) return;
    const ending = this.#process;
    this.#process = undefined;
    if (ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, "exit");
    ending.ref();
    ending.stdin?.end();
    await exited;
  }

  #start(): ChildProcess {
    const flags = [...NO_DEBUGGER, "--max-old-space-size=16", "--max-semi-space-size=1"];
    const child = spawn(process.execPath, [...flags, entryOf("reaper-process")], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      env: {},
    });
    child.unref();
    (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    child.stdin?.on("error", () => {});
    // Somebody killed the reaper. Start another one and send it all groups, at most MOST_RESTARTS times.
    child.on("exit", () => {
      if (this.#process !== child) return;
      this.#restarts += 1;
      this.#process = this.#restarts > MOST_RESTARTS ? undefined : this.#start();
    });
    child.on("error", () => {});
    for (const group of this.#groups) child.stdin?.write(`+${group}\n`);
    return child;
  }

  add(group: number): void {
    this.#groups.add(group);
    this.#process?.stdin?.write(`+${group}\n`);
  }

  delete(group: number): void {
    this.#groups.delete(group);
    this.#process?.stdin?.write(`-${group}\n`);
  }
}

export const reaper = new Reaper();
