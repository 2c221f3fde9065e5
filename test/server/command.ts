/** Runs the command as a process of its own, as users do. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { onTestFinished } from "vitest";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

/** What a command gets from the environment of the tests: no store, no key, and its modules compiled before. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  const cache = process.env.NODE_COMPILE_CACHE;
  return { PATH: process.env.PATH, NO_COLOR: "1", ...(cache && { NODE_COMPILE_CACHE: cache }) };
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = "";
  stderr = "";
  readonly #watchers = new Set<() => void>();

  constructor(
    flags: readonly string[],
    options: {
      readonly cwd?: string;
      /** The program, where it is not the command's source. */
      readonly main?: string;
      readonly node?: readonly string[];
      readonly env?: NodeJS.ProcessEnv;
    } = {},
  ) {
    this.child = spawn(process.execPath, [...(options.node ?? []), options.main ?? MAIN, ...flags], {
      cwd: options.cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...bareEnvironment(), ...options.env },
    });
    for (const name of ["stdout", "stderr"] as const) {
      this.child[name]?.setEncoding("utf8").on("data", (text: string) => {
        this[name] += text;
        for (const watch of this.#watchers) watch();
      });
    }
    this.ended = once(this.child, "close").then(([code]) => {
      for (const watch of this.#watchers) watch();
      return { code, stdout: this.stdout, stderr: this.stderr };
    });
  }

  /** Resolves with the match once the output has it; rejects when the process ends without. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(this.stdout + this.stderr);
        if (match) resolve(match);
        else if (this.child.exitCode !== null) reject(new Error(`it ended: ${this.stdout}${this.stderr}`));
        else return;
        this.#watchers.delete(look);
      };
      this.#watchers.add(look);
      look();
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** Starts the command; it is gone when the test is over, however that ends. */
export function command(...given: ConstructorParameters<typeof RunningCommand>): RunningCommand {
  const running = new RunningCommand(...given);
  onTestFinished(async () => {
    running.kill("SIGKILL");
    await running.ended;
  });
  return running;
}

/** Starts a server and gives its address. */
export async function server(
  flags: readonly string[],
  options?: ConstructorParameters<typeof RunningCommand>[1],
): Promise<RunningCommand & { readonly url: string }> {
  const running = command(["serve", "--port", "0", ...flags], options);
  const [url] = await running.said(/http:\/\/[^\s"]+:\d+/);
  return Object.assign(running, { url });
}
