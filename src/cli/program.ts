import { readFileSync } from "node:fs";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { CurfewError } from "../core/errors.ts";
import { ROLES } from "../server/auth.ts";
import { type NewKeyOptions, newKey } from "./commands/keys.ts";
import type { MigrateOptions } from "./commands/migrate.ts";
import type { ServeOptions } from "./commands/serve.ts";
import { LOG_LEVELS } from "./output.ts";

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Write a whole number.");
  return Number(text);
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(Number.isFinite(value) && value > 0)) throw new InvalidArgumentError("Write a number above 0.");
  return value;
}

function version(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

function createProgram(): Command {
  const program = new Command("curfew")
    .description("Background jobs that end on time.")
    .version(version())
    .exitOverride()
    .showHelpAfterError("(curfew --help shows what there is)");
  addServe(program);
  addMigrate(program);
  addKeys(program);
  return program;
}

function addServe(program: Command): void {
  program
    .command("serve")
    .description("Serve jobs over HTTP, as Open Job Spec describes it.")
    .addOption(
      new Option("--store <address>", "where jobs are kept: sqlite:<file>, postgres://… or memory:")
        .default("sqlite:curfew.db")
        .env("CURFEW_STORE"),
    )
    .addOption(new Option("--host <host>", "where to listen").default("127.0.0.1").env("CURFEW_HOST"))
    .addOption(
      new Option("--port <port>", "0 takes one that is free")
        .default(8080)
        .argParser(wholeNumber)
        .env("CURFEW_PORT"),
    )
    .addOption(new Option("--keys <file>", "the keys that callers must bring").env("CURFEW_KEYS"))
    .option("--workers <module>", "a module that exports processors, to be worked on in this process")
    .option("--cors <origin...>", "origins whose pages may call this server")
    .option("--rate <requests>", "requests per second that each key may send", positiveNumber)
    .option("--drain <duration>", "how long running jobs may finish when the server stops", "25s")
    .option("--traces", "send spans to the OpenTelemetry SDK that this process was started with")
    .option("--conformance", "answer the hooks that the conformance suite needs; never in production")
    .option("--json", "write logs as JSON lines")
    .addOption(new Option("--log-level <level>", "what to log").choices(LOG_LEVELS).default("info"))
    .action(async (options: Omit<ServeOptions, "version">) => {
      // The server's libraries take a while to load, and no other command needs them.
      const { serve } = await import("./commands/serve.ts");
      await serve({ ...options, version: version() });
    });
}

function addMigrate(program: Command): void {
  program
    .command("migrate")
    .description("Bring the tables of a store up to date, as every process does that opens it and may.")
    .addOption(
      new Option("--store <address>", "where jobs are kept: sqlite:<file> or postgres://…")
        .makeOptionMandatory()
        .env("CURFEW_STORE"),
    )
    .option("--schema <name>", "the schema in PostgreSQL, curfew if left out")
    .option("--json", "write logs as JSON lines")
    .addOption(new Option("--log-level <level>", "what to log").choices(LOG_LEVELS).default("info"))
    .action(async (options: MigrateOptions) => {
      const { migrate } = await import("./commands/migrate.ts");
      await migrate(options);
    });
}

function addKeys(program: Command): void {
  program
    .command("keys")
    .description("Keys that callers of a server must bring.")
    .command("new")
    .description("Make a key: it is shown once, and only its hash is kept.")
    .addOption(
      new Option("--role <role>", "what it may do").choices(Object.keys(ROLES)).makeOptionMandatory(),
    )
    .requiredOption("--name <name>", "whose key it is; several keys may share a name")
    .option("--not-after <instant>", "from when on it is refused, such as 2030-01-31T12:00:00Z")
    .option("--file <file>", "add it to this file of keys, which is made if need be")
    .option("--json", "write JSON")
    .action((options: NewKeyOptions) => newKey(options));
}

/** Runs one command and gives its exit code. What goes wrong is said in one line; only a fault of ours shows where it happened. */
export async function run(argv: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(argv);
    return 0;
  } catch (error) {
    // Commander has said it already, and help is no failure.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(error instanceof CurfewError ? `curfew: ${error.message}` : error);
    return 1;
  }
}
