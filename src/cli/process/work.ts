import { spawn } from "node:child_process";
import { type Duration, parseDuration } from "../../core/time.ts";
import { hidePassword, openEngine } from "../../open.ts";
import { openTelemetry } from "../../tracing.ts";
import { CommandFailed } from "../exit.ts";
import type { LogLevel } from "../output/log-levels.ts";
import { createLogOutput, type LogOutput } from "../output/log-output.ts";
import { dim, paint } from "../output/paint.ts";
import { refuseBarePath } from "../target/target.ts";
import { loadWorkers, type WorkOptions } from "./load-workers.ts";
import { logEvents } from "./log-events.ts";
import { onStop } from "./on-stop.ts";
import type { WorkedQueue } from "./worked-queues.ts";

export interface WorkCommandOptions {
  readonly store: string;
  readonly queues?: readonly WorkedQueue[];
  readonly concurrency?: number;
  readonly drain: string;
  readonly watch?: boolean;
  readonly traces?: boolean;
  readonly json?: boolean;
  readonly logLevel: LogLevel;
  readonly version: string;
}

const CONCURRENCY = 10;

/** Runs jobs until SIGTERM or SIGINT. Then running jobs may finish within `drain`. */
export async function work(module: string, options: WorkCommandOptions): Promise<void> {
  parseDuration(options.drain, "--drain", { zero: true });
  refuseBarePath(options.store);
  if (options.store === "memory:")
    throw new CommandFailed(
      "usage",
      "--store: memory: exists only inside its own process, so no job can reach it; pass another store",
    );
  const output = createLogOutput(options);
  const stopped = onStop(output);
  const engine = await openEngine({
    store: options.store,
    logger: output.logger,
    ...(options.traces && { tracing: openTelemetry() }),
  });
  const drain = options.drain as Duration;
  try {
    logEvents(engine, output.logger, options.logLevel === "debug");
    const loaded = await loadWorkers("work", module, engine);
    const queues = queuesFor(loaded, options);
    const worker = engine.work({ ...loaded, queues, drain });
    greet(output, options, loaded, queues);
    await stopped;
    await worker.close({ drain });
  } finally {
    await engine.close({ drain });
  }
  output.say("Stopped.", {}, "stopped");
}

type Queues = NonNullable<WorkOptions["queues"]>;

/** The command line wins over the module. Without either, these are the queues of the definitions. */
function queuesFor({ processors, queues: said }: WorkOptions, options: WorkCommandOptions): Queues {
  const names = options.queues ?? Object.keys(said ?? {}).map((name): WorkedQueue => ({ name }));
  const meant =
    names.length > 0 ? names : processors.map(({ definition }): WorkedQueue => ({ name: definition.queue }));
  return Object.fromEntries(
    meant.map(({ name, concurrency }) => [
      name,
      { concurrency: concurrency ?? options.concurrency ?? said?.[name]?.concurrency ?? CONCURRENCY },
    ]),
  );
}

function greet(output: LogOutput, options: WorkCommandOptions, { processors }: WorkOptions, queues: Queues) {
  const store = hidePassword(options.store);
  const types = processors.map(({ definition }) => definition.type);
  const slots = Object.entries(queues).map(([name, { concurrency }]) => `${name} (${concurrency} at once)`);
  const line = (name: string, text: string) => `  ${dim(name.padEnd(7))} ${text}`;
  const lines = [
    `${paint("bold", `curfew ${options.version}`)} runs ${paint("cyan", types.join(", "))}`,
    line("store", store),
    line("queues", slots.join(", ")),
    line("stop", `Ctrl-C; running jobs get ${options.drain} to finish`),
  ];
  output.say(lines.join("\n"), { store, types, queues, version: options.version }, "working");
}

/**
 * Runs the same command under `node --watch`, which restarts it when the module or a file that it imports changes. The
 * watcher gets a process group of its own: otherwise Ctrl-C would reach the worker twice and skip its drain.
 */
export async function watch(words: readonly string[]): Promise<void> {
  const main = process.argv[1] as string;
  const flags = [...process.execArgv, "--watch", "--watch-preserve-output", main, ...words];
  const child = spawn(process.execPath, flags, { detached: true, stdio: ["ignore", "inherit", "inherit"] });
  for (const [signal, sent] of [
    ["SIGTERM", "SIGTERM"],
    ["SIGINT", "SIGTERM"],
    ["SIGHUP", "SIGTERM"],
  ] as const)
    process.on(signal, () => void child.kill(sent));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code !== 0 && code !== null) throw new CommandFailed("failed", "");
}
