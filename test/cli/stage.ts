/** One store and one server on it, for many commands. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { chain, defineJob, openEngine, processor, step, unchecked } from "../../src/index.ts";
import { bareEnvironment, type Ended, RunningCommand } from "../server/command.ts";
import type { HostedCommand } from "./command-host.ts";

export type Answer = Record<string, unknown> & { readonly items: Record<string, unknown>[] };

/** The same program as the source, in few files that load fast; `test/cli-setup.ts` makes it. */
export const BUILT_MAIN = join(import.meta.dirname, "../../.cache/cli/main.js");
/** These look for files beside their source, or load modules that import the source. */
const FROM_SOURCE = new Set(["serve", "work", "init", "publish"]);

/** Runs one command to its end: in the host of this file, or as a process of its own while the host is busy. */
export function curfew(flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  if (flags.some((flag) => FROM_SOURCE.has(flag))) return new RunningCommand(flags, { env }).ended;
  return host.run(flags, env) ?? new RunningCommand(flags, { env, main: BUILT_MAIN }).ended;
}

/** One process that runs the commands of a file, one at a time; see `command-host.ts`. */
class CommandHost {
  #child: ChildProcess | undefined;
  #isBusy = false;

  /** Gives nothing while another command runs. */
  run(flags: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> | undefined {
    if (this.#isBusy) return undefined;
    this.#isBusy = true;
    return this.#run(flags, env).finally(() => {
      this.#isBusy = false;
    });
  }

  async #run(flags: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
    this.#child ??= await start();
    const child = this.#child;
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once("message", (message) => resolve(message as Ended));
      child.once("exit", (code) =>
        reject(new Error(`curfew ${flags.join(" ")} ended its host with ${code}`)),
      );
    });
    child.send({ flags, env: { ...bareEnvironment(), ...env } } satisfies HostedCommand);
    try {
      return await ended;
    } finally {
      child.removeAllListeners("message").removeAllListeners("exit");
    }
  }

  close(): void {
    this.#child?.disconnect();
    this.#child = undefined;
  }
}

async function start(): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, "command-host.ts"), { env: bareEnvironment() });
  await once(child, "message");
  return child;
}

const host = new CommandHost();
afterAll(() => host.close());

/** Runs one command with `--json` that must succeed, and gives its answer. */
export async function answer(flags: readonly string[]): Promise<Answer> {
  let { code, stdout, stderr } = await curfew([...flags, "--json"]);
  // A database of tests on a busy machine may be silent for seconds; users would ask again, too.
  if (code === 3 && stderr.includes("does not answer"))
    ({ code, stdout, stderr } = await curfew([...flags, "--json"]));
  if (code !== 0) throw new Error(`curfew ${flags.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Answer;
}

export interface Stage {
  readonly folder: string;
  readonly store: string;
  readonly url: string;
  /** Ids of jobs as they were set up. */
  readonly jobs: { readonly waiting: string; readonly dead: string; readonly done: string };
  readonly workflow: string;
  close(): Promise<void>;
}

const charge = defineJob({
  type: "card.charge",
  queue: "payments",
  payload: unchecked<{ cents: number }>(),
  timeouts: { attempt: "30s" },
  retry: { attempts: 1, onExhausted: "dead-letter" },
});
const greet = defineJob({ type: "greet", queue: "greetings" });
const slow = defineJob({ type: "report.build", queue: "reports" });

/** A store with a job that waits, a dead letter, a completed job with a log, a cron and a workflow. */
export async function openStage(serverFlags: readonly string[] = []): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-cli-"));
  const store = `sqlite:${join(folder, "jobs.db")}`;
  const engine = await openEngine({ store, events: "durable" });
  const worker = engine.work({
    processors: [
      processor(charge, () => {
        throw new Error("the bank said no");
      }),
      processor(greet, ({ log }) => {
        log("hello", { to: "you" });
        return { said: "hello" };
      }),
    ],
  });
  const dead = await engine.enqueue(charge, { cents: 1 });
  const done = await engine.enqueue(greet, undefined, { retention: "1d" });
  await Promise.allSettled([dead.result(), done.result()]);
  await worker.close();
  const waiting = await engine.enqueue(slow);
  await engine.crons.put("nightly", { cron: "0 3 * * *", zone: "Europe/Berlin", job: slow });
  const workflow = await engine.workflows.start(chain([step(slow), step(slow)]));
  await engine.close();
  const running = new RunningCommand(["serve", "--port", "0", "--store", store, ...serverFlags], {
    cwd: folder,
  });
  const [url] = await running.said(/http:\/\/[^\s"]+:\d+/);
  return {
    folder,
    store,
    url,
    jobs: { waiting: waiting.id, dead: dead.id, done: done.id },
    workflow: workflow.id,
    async close() {
      running.kill("SIGKILL");
      await running.ended;
      rmSync(folder, { recursive: true });
    },
  };
}
