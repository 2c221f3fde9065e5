import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Place } from "./contender.ts";
import type { Figures } from "./workload.ts";

/** What a host is started with. */
export interface HostOptions {
  readonly key: string;
  readonly workload: string;
  readonly place: Place;
  readonly emptyPlace: Place;
  /** The server whose CPU time counts. */
  readonly serverUrl: string;
  /** The program of Bun, for a contender that runs under it. */
  readonly bun?: string;
}

export type Command = "setUp" | "sample";
export type Answer = { readonly figures: Figures } | { readonly error: string };

const LONGEST = 300_000;

/** A contender in a process of its own, so that no other one's timers, garbage and compiled code are measured with it. */
export class Host {
  readonly #options: HostOptions;
  #child: ChildProcess;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#child = start(options);
  }

  /** Runs one command. A host that does not answer is killed, and the next command gets a new one. */
  async run(command: Command): Promise<Answer> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) this.#child = start(this.#options);
    const child = this.#child;
    const late = setTimeout(() => child.kill("SIGKILL"), LONGEST);
    const answered = once(child, "message").then(([answer]) => answer as Answer);
    const ended = once(child, "exit").then((): Answer => ({ error: "it did not answer" }));
    child.send(command);
    const answer = await Promise.race([answered, ended]);
    clearTimeout(late);
    return withNaN(answer);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

/** JSON has no NaN. */
function withNaN(answer: Answer): Answer {
  if ("error" in answer) return answer;
  const figures = Object.entries(answer.figures).map(([key, figure]) => [key, figure ?? Number.NaN]);
  return { figures: Object.fromEntries(figures) };
}

function start(options: HostOptions): ChildProcess {
  const { bun } = options;
  // Messages between Node and Bun are JSON.
  if (bun !== undefined)
    return fork(join(import.meta.dirname, "bun-main.ts"), [JSON.stringify(options)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      execPath: bun,
      execArgv: [],
    });
  return fork(join(import.meta.dirname, "host-main.ts"), [JSON.stringify(options)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    // JSON has no NaN.
    serialization: "advanced",
  });
}
