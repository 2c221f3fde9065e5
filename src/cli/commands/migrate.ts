import { type Command, Option } from "commander";
import type { MigrateOptions } from "../migrate.ts";
import { LOG_LEVELS } from "../output/log-levels.ts";

export function register(command: Command): void {
  command
    .description(
      "Apply pending migrations. Every process that opens the store does this too, if its role may.",
    )
    .addOption(
      new Option("--store <address>", "where jobs are kept: sqlite:<file> or postgres://…")
        .makeOptionMandatory()
        .env("CURFEW_STORE"),
    )
    .option("--schema <name>", "the schema in PostgreSQL, curfew if left out")
    .option("--json", "write logs as JSON lines")
    .addOption(new Option("--log-level <level>", "what to log").choices(LOG_LEVELS).default("info"))
    .addHelpText(
      "after",
      "\nExamples:\n  curfew migrate --store sqlite:jobs.db\n  curfew migrate --store postgres://localhost/app --schema jobs",
    )
    .action(async (options: MigrateOptions) => {
      const { migrate } = await import("../migrate.ts");
      await migrate(options);
    });
}
