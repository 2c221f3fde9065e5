import { type Command, Option } from "commander";
import { ENGINES } from "../../migrate/open-source.ts";
import { REASON, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import {
  checkHead,
  endLine,
  fieldsIn,
  headLine,
  type NumberedText,
  readLines,
  writeLine,
} from "../export-file.ts";
import { paint, printable } from "../output/paint.ts";
import type { Progress } from "../output/progress.ts";
import { act, type TargetContext } from "../run-command.ts";
import { type FilterOptions, filterFields, withFilters } from "../target/filter-options.ts";
import { offered } from "../target/not-found.ts";
import type { Fields, Query } from "../target/target.ts";
import { type EngineImportOptions, importFromEngine, refuseEngineOptions } from "./import-engine.ts";

const EXPORT = "/ojs/v1/admin/export";
const IMPORT = "/ojs/v1/admin/import";
const GUIDE = "docs/guides/moving-jobs.md says what is in a line.";

interface ExportOptions extends FilterOptions {
  readonly ended?: boolean;
  readonly dead?: boolean;
  readonly partial?: boolean;
}

export function registerExport(command: Command): void {
  command.description(
    "Write jobs to standard output as JSON lines: waiting jobs and dead letters, with payloads, timeouts and keys.",
  );
  withFilters(withTarget(command))
    .option("--ended", "also jobs that have ended")
    .option("--dead", "only dead letters")
    .option("--partial", "end with 0 although jobs were left out");
  withPage(command, {
    examples: [
      ["export > jobs.jsonl", "all that waits, and dead letters"],
      ["export --queue payments --ended > payments.jsonl", "everything of one queue"],
      [
        "export --store sqlite:jobs.db | curfew import --store postgres://localhost/app",
        "move to PostgreSQL",
      ],
    ],
    json: 'lines in any case: {"curfew":"export","version",…}, {"kind":"job",…}, {"kind":"unique",…}, {"curfew":"end",…}',
    more: `Running jobs and jobs of workflows are left out and counted, and the command ends with 1 because of them. Sagas,\ncrons, timeouts, queue settings, events and logs are not exported. ${GUIDE}`,
  });
  act<ExportOptions>(command, exportJobs);
}

/** A page that was larger than this is asked for in smaller parts, so that large payloads do not fill the memory. */
const LARGE_PAGE = 4 * 1024 * 1024;
const MOST_PER_PAGE = 200;

async function exportJobs({ target, output, signal }: TargetContext, options: ExportOptions): Promise<void> {
  const filter = { ...filterFields(options, target.now()), ...(options.dead && { dead_letter: true }) };
  const counts = { job: 0, unique: 0 };
  const leftOut: Record<string, number> = {};
  await output.during("exporting", async (progress) => {
    let perPage = MOST_PER_PAGE;
    for (let cursor: unknown = ""; cursor !== null; ) {
      signal.throwIfAborted();
      const query = { ...(filter as Query), per_page: perPage, ...(options.ended && { ended: true }) };
      const page = await offered(target, "exports", () =>
        target.get(EXPORT, { ...query, ...(cursor !== "" && { cursor: String(cursor) }) }),
      );
      if (cursor === "") await writeLine(headLine(new Date(target.now()).toISOString(), filter));
      let size = 0;
      for (const line of page.lines as readonly Fields[]) {
        await writeLine(line);
        size += String(line.payload ?? "").length;
        counts[line.kind as "job" | "unique"] += 1;
      }
      for (const [because, count] of Object.entries(page.left_out as Record<string, number>))
        leftOut[because] = (leftOut[because] ?? 0) + count;
      perPage = size > LARGE_PAGE ? Math.max(1, perPage >> 2) : Math.min(MOST_PER_PAGE, perPage * 2);
      progress.update(counts.job);
      cursor = page.next_cursor;
    }
  });
  await writeLine(endLine(counts.job, counts.unique, leftOut));
  output.note(`${jobs(counts.job)} exported.`);
  const missing = leftOutText(leftOut);
  if (missing === "") return;
  const fix = "wait until they have ended and export again, or accept it with --partial";
  if (!options.partial) throw new CommandFailed("failed", `left out: ${missing}; ${fix}`);
  output.note(paint("yellow", `Left out: ${missing}.`, process.stderr));
}

const LEFT_OUT: Readonly<Record<string, (count: number) => string>> = {
  running: (count) => `${count} running ${count === 1 ? "job" : "jobs"}`,
  workflow: (count) => `${count} ${count === 1 ? "job" : "jobs"} of workflows`,
  importing: (count) => `${count} ${count === 1 ? "job" : "jobs"} of an import that did not end`,
};

function leftOutText(leftOut: Readonly<Record<string, number>>): string {
  return Object.entries(LEFT_OUT)
    .flatMap(([name, text]) => (leftOut[name] ? [text(leftOut[name])] : []))
    .join(", ");
}

const jobs = (count: number) => `${count} ${count === 1 ? "job" : "jobs"}`;

type ImportOptions = EngineImportOptions;

export function registerImport(command: Command): void {
  command
    .description(
      "Store the jobs of an export, or move the jobs of pg-boss, graphile-worker or BullMQ. It can be stopped and repeated: known jobs are left alone.",
    )
    .argument("[file]", "what export wrote; - or nothing reads standard input", "-");
  withTarget(command)
    .option("--dry-run", "check everything and look for known ids, and change nothing")
    .option(...REASON);
  withEngine(command);
  withPage(command, {
    examples: [
      ["import jobs.jsonl --dry-run", "what would be stored, and which lines are wrong"],
      ["import jobs.jsonl --store postgres://localhost/app", "store it"],
      [
        "import --from pg-boss --source postgres://localhost/app --dry-run",
        "what would be moved, and what cannot be",
      ],
      ["import --from bullmq --source redis://localhost --only mail", "move one queue"],
    ],
    json: '{"dry_run","created","exists","duplicate","invalid","is_complete","errors":[{"line","message"}]}, the first 100 errors; with --from {"dry_run","moved","known","crons","active","refused":[{"reason","says","count","examples"}],"changed":[…],"notes","is_atomic","is_complete"}',
    more: `A job keeps its id, its deadlines and its attempts. A dry run does not look up unique keys. ${GUIDE}\nWith --from, jobs are removed from the old system as they are stored. docs/guides/from-pg-boss.md,\nfrom-graphile-worker.md and from-bullmq.md say what is carried over.`,
  });
  act<ImportOptions>(command, importJobs);
}

/** The options for jobs of another job system. */
function withEngine(command: Command): void {
  const each = (value: string, list: readonly string[] = []) => [...list, value];
  command
    .addOption(new Option("--from <system>", "move the jobs of this job system").choices(ENGINES))
    .addOption(
      new Option("--source <address>", "its database: postgres://… or redis://…").env("CURFEW_IMPORT_SOURCE"),
    )
    .option("--schema <name>", "its schema (default: pgboss or graphile_worker)")
    .option("--prefix <text>", "the prefix of BullMQ's keys (default: bull)")
    .option("--crontab <file>", "the crontab of graphile-worker")
    .option("--only <name>", "only this queue, or task of graphile-worker; may be repeated", each)
    .option("--rename <old=new>", "the type for jobs of this name; may be repeated", each)
    .option("--into <queue>", "the queue for all jobs")
    .option("--partial", "end with 0 although something was left out");
}

interface Line {
  readonly number: number;
  readonly fields: Fields;
}

const BATCH_LINES = 200;
/** A server takes 4 MiB. */
const BATCH_CHARACTERS = 1_000_000;
const MOST_ERRORS = 100;

/** What has been done so far. */
class Import {
  readonly counts = { created: 0, exists: 0, duplicate: 0, invalid: 0 };
  readonly errors: { readonly line: number; readonly message: string }[] = [];
  readonly #context: TargetContext;
  readonly #options: ImportOptions;
  readonly #progress: Progress;
  #batch: Line[] = [];
  #size = 0;
  #jobs = 0;
  /** The last line that was sent. */
  #lastLine = 0;
  /** The last line that was read. */
  #readTo = 1;
  /** How many jobs the last line says that there are; undefined until it was read. */
  #end: unknown;

  constructor(context: TargetContext, options: ImportOptions, progress: Progress) {
    this.#context = context;
    this.#options = options;
    this.#progress = progress;
  }

  get lastLine(): number {
    return this.#lastLine;
  }

  async add({ number, text }: NumberedText): Promise<void> {
    this.#readTo = number;
    const fields = fieldsIn(text);
    if (fields === undefined) this.#wrong(number, "not a JSON object; the file is damaged or cut off here");
    else if (fields.curfew === "end") this.#end = fields.jobs;
    else if (this.#end !== undefined) this.#wrong(number, "it comes after the last line of the export");
    else {
      if (fields.kind === "job") this.#jobs += 1;
      if (this.#size + text.length > BATCH_CHARACTERS) await this.send();
      this.#batch.push({ number, fields });
      this.#size += text.length;
      if (this.#batch.length >= BATCH_LINES) await this.send();
    }
  }

  async send(): Promise<void> {
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    this.#size = 0;
    const { target } = this.#context;
    const { dryRun, reason } = this.#options;
    const reply = await offered(target, "imports", () =>
      target.send("POST", IMPORT, {
        lines: batch.map(({ fields }) => fields),
        dry_run: dryRun === true,
        reason,
      }),
    );
    for (const [index, { status, message }] of (reply.results as readonly Fields[]).entries()) {
      const { number, fields } = batch[index] as Line;
      if (typeof message === "string") this.#note(number, message);
      if (fields.kind !== "unique" || status === "invalid")
        this.counts[status as keyof Import["counts"]] += 1;
    }
    this.#lastLine = batch.at(-1)?.number ?? this.#lastLine;
    this.#progress.update(this.counts.created + this.counts.exists);
  }

  /** Says what is missing at the end of the file. */
  finish(): void {
    if (this.#end === undefined)
      this.#note(this.#readTo, "the file ends without its last line, so it was cut off; export again");
    else if (this.#end !== this.#jobs)
      this.#note(
        this.#readTo,
        `the last line says ${this.#end} jobs, and there are ${this.#jobs}; export again`,
      );
  }

  #wrong(line: number, message: string): void {
    this.counts.invalid += 1;
    this.#note(line, message);
  }

  #note(line: number, message: string): void {
    if (this.errors.length < MOST_ERRORS) this.errors.push({ line, message });
  }
}

async function importJobs(
  context: TargetContext,
  options: ImportOptions,
  words: readonly string[],
): Promise<void> {
  if (options.from !== undefined) return importFromEngine(context, options, words[0] as string);
  refuseEngineOptions(options);
  const { output, signal } = context;
  const isDry = options.dryRun === true;
  const done = await output.during(isDry ? "checking" : "importing", async (progress) => {
    const work = new Import(context, options, progress);
    let isFirst = true;
    for await (const line of readLines(words[0] as string)) {
      if (isFirst) checkHead(line);
      else await guarded(work, () => work.add(line));
      isFirst = false;
      if (signal.aborted) return work;
    }
    if (isFirst) throw new CommandFailed("usage", "there is no line in the file; export writes at least two");
    await guarded(work, () => work.send());
    work.finish();
    return work;
  });
  const { counts, errors } = done;
  for (const { line, message } of errors.slice(0, 20)) output.note(`line ${line}: ${printable(message)}`);
  if (errors.length > 20) output.note(`… and ${errors.length - 20} more; --json prints up to ${MOST_ERRORS}`);
  const isComplete = !signal.aborted && errors.length === 0;
  output.answer({ dry_run: isDry, ...counts, is_complete: isComplete, errors }, () =>
    summaryText(isDry, counts),
  );
  if (signal.aborted)
    throw new CommandFailed(
      "interrupted",
      `stopped after line ${done.lastLine}; run it again to go on: known jobs are left alone`,
    );
  if (errors.length > 0)
    throw new CommandFailed("failed", "not everything was imported; the errors name the lines");
}

/** A store that fails in the middle: how far it came must be known. */
async function guarded(work: Import, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const { created, exists } = work.counts;
    const far = `after line ${work.lastLine}, with ${created} jobs stored and ${exists} known; run it again to go on`;
    throw new CommandFailed(error.exit, `${error.message}; stopped ${far}`, { cause: error });
  }
}

function summaryText(isDry: boolean, { created, exists, duplicate, invalid }: Import["counts"]): string {
  const parts = [
    isDry ? `${jobs(created)} would be imported` : `${jobs(created)} imported`,
    ...(exists > 0 ? [`${exists} known and left alone`] : []),
    ...(duplicate > 0 ? [`${duplicate} refused: another job has their unique key`] : []),
    ...(invalid > 0 ? [`${invalid} ${invalid === 1 ? "line is" : "lines are"} wrong`] : []),
  ];
  return `${parts.join(", ")}.`;
}
