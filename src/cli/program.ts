import { Command } from "commander";
import { commandWords } from "./command-words.ts";
import { EXITS } from "./exit.ts";
import { endAtFailedWrite, reportError } from "./report-error.ts";
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
  job("run", "run a scheduled job or a retry now"),
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
    name: "calendars",
    summary: "list, store and delete business calendars",
    group: LOOK,
    load: async () => (await import("./commands/calendars.ts")).register,
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
    name: "schemas",
    summary: "publish, list and check schemas of jobs",
    group: LOOK,
    load: async () => (await import("./commands/schemas.ts")).register,
  },
  {
    name: "webhooks",
    summary: "list, add, test and remove webhooks; see and repeat their deliveries",
    group: LOOK,
    load: async () => (await import("./commands/webhooks.ts")).register,
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
    summary: "store the jobs of an export, or of another job system",
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

const NOTES = `
Most commands take --store <address> or --url <url>, or CURFEW_STORE and CURFEW_URL.
A noun alone asks: curfew queues is curfew queues ls, curfew maintenance is curfew maintenance status.
With --json an error is one line on standard error: {"error":{"code","message"}}. The code is failed, usage,
unreachable, refused or interrupted.`;

/** The program. Only the commands that `words` names are loaded; the others have a name and a summary. */
export async function createProgram(words: readonly string[] | "all"): Promise<Command> {
  const program = new Command("curfew")
    .description("Background jobs that end on time.")
    .version(packageVersion())
    .addHelpText("after", NOTES);
  const isJson = words !== "all" && words.includes("--json");
  // Under --json the error is printed once, as JSON.
  if (isJson) program.configureOutput({ outputError: () => {} });
  for (const { name, summary, group, isHidden = false, load } of ENTRIES) {
    const command = program.command(name, { hidden: isHidden }).summary(summary).helpGroup(group);
    if (words === "all" || words.some((word) => word === name || (word === "list" && name === "ls")))
      (await load())(command);
  }
  prepare(program, "curfew", isJson);
  return program;
}

/** Usage errors are thrown, and name the help of their own command. */
function prepare(command: Command, path: string, isJson: boolean): void {
  command.exitOverride().showHelpAfterError(isJson ? false : `(see ${path} --help)`);
  for (const each of command.commands) {
    if (each.name() === "ls") each.alias("list");
    prepare(each, `${path} ${each.name()}`, isJson);
  }
}

/** Runs one command and returns its exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const words = argv.slice(2);
  const style = { isJson: words.includes("--json") };
  endAtFailedWrite(style);
  try {
    const program = await createProgram(words);
    await program.parseAsync(commandWords(program, words), { from: "user" });
    return EXITS.ok.code;
  } catch (error) {
    return reportError(error, style);
  }
}
