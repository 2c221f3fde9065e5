import { type Command, Option } from "commander";
import type { MigrateOptions } from "../migrate.ts";
import { LOG_LEVELS } from "../output/log-levels.ts";

export function register(command: Command): void {
  command
    .description(
      "Apply pending migrations. Programs that open the store, serve and work do this, too, if their role may; other commands do not.",
    )
    .addOption(
      new Option("--store <address>", "where jobs are kept: sqlite:<file> or postgres://…")
        .makeOptionMandatory()
        .env("CURFEW_STORE"),
    )
    .option("--schema <name>", "the schema in PostgreSQL, curfew if left out")
    .option("--plan", "print the SQL that would run, and change nothing")
    .addOption(
      new Option(
        "--search-index <on|off>",
        "build or remove the index that searches the payloads of all jobs at once",
      ).choices(["on", "off"]),
    )
    .option("--json", "write logs as JSON lines; with --plan, print one JSON document")
    .addOption(new Option("--log-level <level>", "what to log").choices(LOG_LEVELS).default("info"))
    .addHelpText(
      "after",
      '\nExamples:\n  curfew migrate --store sqlite:jobs.db\n  curfew migrate --store postgres://localhost/app --schema jobs\n  curfew migrate --store postgres://localhost/app --plan\n  curfew migrate --store sqlite:jobs.db --search-index on\n\nWith --plan --json: {"store","current","newest","pending":[{"version","name","sql"}]}',
    )
    .action(async (options: MigrateOptions) => {
      const { migrate, plan } = await import("../migrate.ts");
      await (options.plan ? plan(options) : migrate(options));
    });
}
