import { Command, CommanderError } from "commander";
import { CurfewError, ERRORS } from "../core/errors.ts";
import { CommandFailed, EXITS } from "./exit.ts";
import { packageVersion } from "./version.ts";

/** A command, or a noun with commands below it. Its module is loaded when somebody names it. */
interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  /** Gives a command its options, its action and the commands below it. */
  readonly load: () => Promise<(command: Command) => void>;
}

const LOOK = "Queues, schedules and workers:";
const RUN = "Run and operate:";

const ENTRIES: readonly Entry[] = [
  {
    name: "workers",
    summary: "list workers; ask one to take no more jobs, or to stop",
    group: LOOK,
    load: async () => (await import("./commands/workers.ts")).register,
  },
  {
    name: "serve",
    summary: "serve jobs over HTTP",
    group: RUN,
    load: async () => (await import("./commands/serve.ts")).register,
  },
  {
    name: "migrate",
    summary: "apply pending migrations to a store",
    group: RUN,
    load: async () => (await import("./commands/migrate.ts")).register,
  },
  {
    name: "keys",
    summary: "keys that callers of a server must bring",
    group: RUN,
    load: async () => (await import("./commands/keys.ts")).register,
  },
];

/** The program with the commands that the words name; the others are there by name and summary only. */
export async function createProgram(words: readonly string[] | "all"): Promise<Command> {
  const program = new Command("curfew")
    .description("Background jobs that end on time.")
    .version(packageVersion())
    .showHelpAfterError("(see curfew --help)")
    .addHelpText(
      "after",
      "\nMost commands take --store <address> or --url <url>, or CURFEW_STORE and CURFEW_URL.",
    );
  for (const { name, summary, group, load } of ENTRIES) {
    const command = program.command(name).summary(summary).helpGroup(group);
    if (words === "all" || words.includes(name)) (await load())(command);
  }
  throwInsteadOfExit(program);
  return program;
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const each of command.commands) throwInsteadOfExit(each);
}

/** Runs one command and gives its exit code. What goes wrong is said in one line; only a fault of ours shows where it happened. */
export async function run(argv: readonly string[]): Promise<number> {
  // `curfew ls | head` ends when head has enough: that is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXITS.ok.code);
    throw error;
  });
  try {
    const program = await createProgram(argv.slice(2));
    await program.parseAsync(argv);
    return EXITS.ok.code;
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): number {
  // Commander has said it already, and help is no failure.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXITS.ok.code : EXITS.usage.code;
  if (error instanceof CommandFailed) {
    process.stderr.write(`curfew: ${error.message}\n`);
    return EXITS[error.exit].code;
  }
  if (!(error instanceof CurfewError)) {
    console.error(error);
    return EXITS.failed.code;
  }
  process.stderr.write(`curfew: ${error.message}\n`);
  return ERRORS[error.code].kind === "programmer" ? EXITS.usage.code : EXITS.failed.code;
}
