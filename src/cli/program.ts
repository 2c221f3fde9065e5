import { Command, CommanderError } from "commander";
import { CurfewError, ERRORS } from "../core/errors.ts";
import { CommandFailed, EXITS } from "./exit.ts";
import { packageVersion } from "./version.ts";

/** A command, or a noun with commands below it. Its module is loaded when the command line names it. */
interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  readonly isHidden?: true;
  /** Gives a command its options, its action and the commands below it. */
  readonly load: () => Promise<(command: Command) => void>;
}

const JOBS = "Jobs:";
const LOOK = "Queues, schedules and workers:";
const RUN = "Run and operate:";

/** The commands about jobs are used most, so they need no noun; `curfew jobs ls` works too. */
const job = (name: string, summary: string): Entry => ({
  name,
  summary,
  group: JOBS,
  load: async () => (await import("./commands/jobs.ts")).verb(name),
});

const ENTRIES: readonly Entry[] = [
  job("ls", "list jobs, by state, type, queue and time"),
  job("show", "show one job"),
  job("why", "say why a job does not run, or ended as it did"),
  job("explain", "say where the limits of a job come from"),
  job("enqueue", "enqueue a job"),
  job("cancel", "end jobs that wait or run, by id or filter"),
  job("retry", "run discarded jobs again, by id or filter"),
  job("delete", "delete jobs that have ended, by id or filter"),
  job("extend", "change the limits of a job"),
  job("activate", "let a pending job run"),
  job("logs", "print the log of a job"),
  job("tail", "print events as they happen"),
  job("wait", "wait until jobs have ended"),
  {
    name: "jobs",
    summary: "the commands about jobs under their noun: curfew jobs ls",
    group: JOBS,
    isHidden: true,
    load: async () => (await import("./commands/jobs.ts")).register,
  },
  {
    name: "queues",
    summary: "list, pause, resume, limit and purge queues",
    group: LOOK,
    load: async () => (await import("./commands/queues.ts")).register,
  },
  {
    name: "dead",
    summary: "list, retry and delete dead letters",
    group: LOOK,
    load: async () => (await import("./commands/dead.ts")).register,
  },
  {
    name: "cron",
    summary: "list, show, run, pause and resume crons",
    group: LOOK,
    load: async () => (await import("./commands/cron.ts")).register,
  },
  {
    name: "workflows",
    summary: "list and show workflows",
    group: LOOK,
    load: async () => (await import("./commands/workflows.ts")).register,
  },
  {
    name: "sagas",
    summary: "list and show sagas",
    group: LOOK,
    load: async () => (await import("./commands/sagas.ts")).register,
  },
  {
    name: "timeouts",
    summary: "list, revoke, reschedule and requeue timeouts",
    group: LOOK,
    load: async () => (await import("./commands/timeouts.ts")).register,
  },
  {
    name: "workers",
    summary: "list workers; ask one to take no more jobs, or to stop",
    group: LOOK,
    load: async () => (await import("./commands/workers.ts")).register,
  },
  {
    name: "top",
    summary: "watch queues, workers and running jobs on a live screen",
    group: LOOK,
    load: async () => (await import("./commands/top.ts")).register,
  },
  {
    name: "stats",
    summary: "how much there is to do, and how much was done",
    group: LOOK,
    load: async () => (await import("./commands/stats.ts")).register,
  },
  {
    name: "advise",
    summary: "suggest attempt timeouts from the runs that were seen",
    group: LOOK,
    load: async () => (await import("./commands/advise.ts")).register,
  },
  {
    name: "limits",
    summary: "list, set and reset limits of keys",
    group: LOOK,
    load: async () => (await import("./commands/limits.ts")).register,
  },
  {
    name: "audit",
    summary: "list what operators did",
    group: LOOK,
    load: async () => (await import("./commands/audit.ts")).register,
  },
  {
    name: "init",
    summary: "write a typed starter: jobs, worker, web and test",
    group: RUN,
    load: async () => (await import("./commands/init.ts")).register,
  },
  {
    name: "work",
    summary: "run a worker without HTTP",
    group: RUN,
    load: async () => (await import("./commands/work.ts")).register,
  },
  {
    name: "serve",
    summary: "serve jobs over HTTP",
    group: RUN,
    load: async () => (await import("./commands/serve.ts")).register,
  },
  {
    name: "doctor",
    summary: "look for problems of the store, the workers and this machine",
    group: RUN,
    load: async () => (await import("./commands/doctor.ts")).register,
  },
  {
    name: "maintenance",
    summary: "stop all queues, and let them go on",
    group: RUN,
    load: async () => (await import("./commands/maintenance.ts")).register,
  },
  {
    name: "migrate",
    summary: "apply pending migrations to a store",
    group: RUN,
    load: async () => (await import("./commands/migrate.ts")).register,
  },
  {
    name: "backup",
    summary: "copy a SQLite store while workers go on",
    group: RUN,
    load: async () => (await import("./commands/backup.ts")).registerBackup,
  },
  {
    name: "restore",
    summary: "put a backup in the place of a SQLite store",
    group: RUN,
    load: async () => (await import("./commands/backup.ts")).registerRestore,
  },
  {
    name: "export",
    summary: "write jobs as JSON lines",
    group: RUN,
    load: async () => (await import("./commands/transfer.ts")).registerExport,
  },
  {
    name: "import",
    summary: "store the jobs of an export",
    group: RUN,
    load: async () => (await import("./commands/transfer.ts")).registerImport,
  },
  {
    name: "keys",
    summary: "keys for callers of a server",
    group: RUN,
    load: async () => (await import("./commands/keys.ts")).register,
  },
  {
    name: "bench",
    summary: "measure how fast a store is",
    group: RUN,
    load: async () => (await import("./commands/bench.ts")).register,
  },
  {
    name: "mcp",
    summary: "let an assistant look at jobs: a Model Context Protocol server",
    group: RUN,
    load: async () => (await import("./commands/mcp.ts")).register,
  },
  {
    name: "completion",
    summary: "complete commands and options in bash, zsh or fish",
    group: RUN,
    load: async () => {
      const { register } = await import("./commands/completion.ts");
      return (command) => register(command, () => createProgram("all"));
    },
  },
];

/** The program. Only the commands that `words` names are loaded; the others have a name and a summary. */
export async function createProgram(words: readonly string[] | "all"): Promise<Command> {
  const program = new Command("curfew")
    .description("Background jobs that end on time.")
    .version(packageVersion())
    .showHelpAfterError("(see curfew --help)")
    .addHelpText(
      "after",
      "\nMost commands take --store <address> or --url <url>, or CURFEW_STORE and CURFEW_URL.",
    );
  for (const { name, summary, group, isHidden = false, load } of ENTRIES) {
    const command = program.command(name, { hidden: isHidden }).summary(summary).helpGroup(group);
    if (words === "all" || words.includes(name)) (await load())(command);
  }
  throwInsteadOfExit(program);
  return program;
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const each of command.commands) throwInsteadOfExit(each);
}

/** Runs one command and returns its exit code. A failure is one line; only a bug in curfew prints a stack. */
export async function run(argv: readonly string[]): Promise<number> {
  // `curfew ls | head` closes the pipe early; that is not a failure.
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
  // Commander has printed the message. Help is not a failure.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXITS.ok.code : EXITS.usage.code;
  if (error instanceof CommandFailed) {
    if (error.message !== "") process.stderr.write(`curfew: ${error.message}\n`);
    return EXITS[error.exit].code;
  }
  if (!(error instanceof CurfewError)) {
    console.error(error);
    return EXITS.failed.code;
  }
  process.stderr.write(`curfew: ${error.message}\n`);
  if (error.code === "store_failed" || error.code === "server_failed") return EXITS.unreachable.code;
  return ERRORS[error.code].kind === "programmer" ? EXITS.usage.code : EXITS.failed.code;
}
