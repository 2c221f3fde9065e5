import { type Command, Option } from "commander";
import { countNumber, withPage } from "../declare.ts";
import { LOG_LEVELS } from "../output/log-levels.ts";
import type { WorkCommandOptions } from "../process/work.ts";
import { workedQueues } from "../process/worked-queues.ts";
import { packageVersion } from "../version.ts";

export function register(command: Command): void {
  command
    .description("Run a worker: a process that runs jobs and serves no HTTP.")
    .argument("<module>", "a JavaScript or TypeScript file that exports processors by default")
    .addOption(
      new Option("--store <address>", "where jobs are stored: sqlite:<file>, postgres://… or redis://…")
        .default("sqlite:curfew.db")
        .env("CURFEW_STORE"),
    )
    .option("--queues <list>", "only these queues, such as mail,payments=5 (5 at once)", workedQueues)
    .option("--concurrency <count>", "how many jobs of each queue run at once", countNumber)
    .option("--drain <duration>", "how long running jobs may finish when the worker stops", "25s")
    .option("--watch", "restart when the module or a file that it imports changes; for development")
    .option("--traces", "send spans to the OpenTelemetry SDK that this process was started with")
    .addOption(new Option("--log-level <level>", "what to log").choices(LOG_LEVELS).default("info"));
  withPage(command, {
    examples: [
      ["work worker.ts", "run jobs of the queues that the definitions name"],
      ["work worker.ts --queues mail=20,payments=2", "20 mails and 2 payments at once"],
      ["work worker.ts --watch", "restart at every change, while you develop"],
    ],
    json: "log lines; nothing else",
    more: [
      "The default export of the module is a list of processors, the options of engine.work(), or a function that gets the",
      "engine and returns one of these. Node 22.18 and newer run TypeScript as it is. SIGTERM and Ctrl-C take no more jobs",
      "and let running ones finish; the second signal ends the process at once.",
    ].join("\n"),
  }).action(async (module: string, options: Omit<WorkCommandOptions, "version">) => {
    const { watch, work } = await import("../process/work.ts");
    if (options.watch) await watch(process.argv.slice(2).filter((word) => word !== "--watch"));
    else await work(module, { ...options, version: packageVersion() });
  });
}
