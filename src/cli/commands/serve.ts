import { type Command, Option } from "commander";
import { ifMissing, SERVER_PACKAGES } from "../../core/load-package.ts";
import { positiveNumber, wholeNumber } from "../declare.ts";
import { LOG_LEVELS } from "../output/log-levels.ts";
import type { ServeOptions } from "../process/serve.ts";
import { packageVersion } from "../version.ts";

export function register(command: Command): void {
  command
    .description("Serve jobs over HTTP, by Open Job Spec.")
    .addOption(
      new Option(
        "--store <address>",
        "where jobs are kept: sqlite:<file>, postgres://…, redis://… or memory:",
      )
        .default("sqlite:curfew.db")
        .env("CURFEW_STORE"),
    )
    .addOption(new Option("--host <host>", "where to listen").default("127.0.0.1").env("CURFEW_HOST"))
    .addOption(
      new Option("--port <port>", "port; 0 picks a free one")
        .default(8080)
        .argParser(wholeNumber)
        .env("CURFEW_PORT"),
    )
    .addOption(new Option("--keys <file>", "the file with the keys of callers").env("CURFEW_KEYS"))
    .option("--workers <module>", "a module that exports processors, to run jobs in this process")
    .addOption(
      new Option(
        "--demo",
        "fill an embedded store with a shop that keeps itself busy; on curfew-demo.db unless --store says otherwise",
      ).conflicts(["workers", "conformance"]),
    )
    .option("--cors <origin...>", "web origins that may call this server")
    .option("--rate <requests>", "requests per second that each key may send", positiveNumber)
    .option("--no-webhooks", "leave deliveries of webhooks to other servers on this store")
    .option(
      "--webhooks-allow <host-or-range...>",
      "hosts and address ranges that webhooks may call beside public ones, such as hooks.internal or 10.1.0.0/16",
    )
    .option("--drain <duration>", "how long running jobs may finish when the server stops", "25s")
    .option("--traces", "send spans to the OpenTelemetry SDK that this process was started with")
    .option("--conformance", "answer the hooks that the conformance suite needs; never in production")
    .option("--json", "write logs as JSON lines")
    .addOption(new Option("--log-level <level>", "what to log").choices(LOG_LEVELS).default("info"))
    .addHelpText(
      "after",
      `
Examples:
  curfew serve                                             # on curfew.db in this folder
  curfew serve --store postgres://localhost/app --port 80  # on PostgreSQL
  curfew serve --demo                                      # look around: jobs that time out, loop and recover
  curfew serve --workers ./workers.js                      # and run jobs in the same process`,
    )
    .action(async (options: Omit<ServeOptions, "version">, self: Command) => {
      const { serve } = await import("../process/serve.ts").catch(ifMissing(SERVER_PACKAGES, "curfew serve"));
      const isOwnStore = options.demo && self.getOptionValueSource("store") === "default";
      const store = isOwnStore ? "sqlite:curfew-demo.db" : options.store;
      await serve({ ...options, store, version: packageVersion() });
    });
}
