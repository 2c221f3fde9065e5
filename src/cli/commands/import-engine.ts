import { CurfewError } from "../../core/errors.ts";
import type { MoveReport } from "../../migrate/move.ts";
import type { EngineName } from "../../migrate/open-source.ts";
import type { Tally } from "../../migrate/report.ts";
import type { Source } from "../../migrate/source.ts";
import { CommandFailed } from "../exit.ts";
import { paint, printable } from "../output/paint.ts";
import type { TargetContext } from "../run-command.ts";

export interface EngineImportOptions {
  readonly from?: EngineName;
  readonly source?: string;
  readonly schema?: string;
  readonly prefix?: string;
  readonly crontab?: string;
  readonly only?: readonly string[];
  readonly rename?: readonly string[];
  readonly into?: string;
  readonly partial?: boolean;
  readonly dryRun?: boolean;
  readonly reason?: string;
  readonly store?: string;
}

/** Options that mean nothing without `--from`. */
const ENGINE_OPTIONS = [
  "source",
  "schema",
  "prefix",
  "crontab",
  "only",
  "rename",
  "into",
  "partial",
] as const;

export function refuseEngineOptions(options: EngineImportOptions): void {
  const isWritten = (name: (typeof ENGINE_OPTIONS)[number]) =>
    options[name] !== undefined && options[name] !== process.env.CURFEW_IMPORT_SOURCE;
  const name = ENGINE_OPTIONS.find(isWritten);
  if (name !== undefined)
    throw new CommandFailed("usage", `--${name}: it belongs to --from; name the job system with --from`);
}

/** Moves the jobs and crons of another job system into the store. */
export async function importFromEngine(
  { target, output, signal }: TargetContext,
  options: EngineImportOptions,
  file: string,
): Promise<void> {
  const { engine } = target;
  if (file !== "-") throw new CommandFailed("usage", "--from: jobs come from --source; leave the file out");
  if (engine === undefined)
    throw new CommandFailed("usage", "--from: it writes into a store; pass --store <address>, not --url");
  const isDry = options.dryRun === true;
  const by = { actor: "curfew import", ...(options.reason !== undefined && { reason: options.reason }) };
  const report = await output.during(isDry ? "checking" : "moving", async (progress) => {
    const { move } = await import("../../migrate/move.ts");
    const source = await open(options, () => engine.now());
    const onProgress = (done: number, total: number) => progress.update(done, total);
    try {
      return await move(source, engine, { isDry, by, signal, onProgress });
    } finally {
      await source[Symbol.asyncDispose]();
    }
  });
  const { isAtomic, isComplete, ...rest } = report;
  output.answer({ dry_run: isDry, ...rest, is_atomic: isAtomic, is_complete: isComplete }, () =>
    summaryText(report, isDry),
  );
  for (const line of detailLines(report)) output.note(line);
  if (signal.aborted)
    throw new CommandFailed("interrupted", "stopped between two batches; run it again to go on");
  if (!isComplete && options.partial !== true)
    throw new CommandFailed("failed", "not everything was carried over; accept that with --partial");
}

async function open(options: EngineImportOptions, now: () => number): Promise<Source> {
  const { from, source, store } = options;
  if (source === undefined || from === undefined)
    throw new CommandFailed("usage", "--source: name the database of the old system");
  const { openSource } = await import("../../migrate/open-source.ts");
  try {
    return await openSource({ ...options, from, source, store: store ?? "" }, now);
  } catch (error) {
    if (error instanceof CurfewError) throw new CommandFailed("usage", error.message, { cause: error });
    const because = error instanceof Error ? error.message || error.name : String(error);
    throw new CommandFailed("unreachable", `--source: it cannot be opened: ${because}`, { cause: error });
  }
}

const count = (number: number, one: string) => `${number} ${one}${number === 1 ? "" : "s"}`;

function summaryText({ moved, known, crons }: MoveReport, isDry: boolean): string {
  const would = isDry ? " would be" : "";
  const parts = [
    `${count(moved, "job")}${would} moved`,
    ...(crons > 0 ? [`${count(crons, "cron")}${would} moved`] : []),
    ...(known > 0 ? [`${known} known from an earlier run and${would} removed from the old system`] : []),
  ];
  return `${parts.join(", ")}.`;
}

function* detailLines({ refused, changed, active, notes }: MoveReport): Generator<string> {
  if (refused.length > 0) yield paint("yellow", "Not carried over:", process.stderr);
  for (const tally of refused) yield* tallyLines(tally);
  if (changed.length > 0) yield "Carried over with a difference:";
  for (const tally of changed) yield* tallyLines(tally);
  if (active > 0)
    yield `${count(active, "job")} stayed because a worker of the old system runs ${active === 1 ? "it" : "them"}. Stop its workers, or wait until they have ended, and run this again.`;
  for (const note of notes) yield `Note: ${printable(note)}.`;
}

function* tallyLines({ says, count: number, examples }: Tally): Generator<string> {
  yield `  ${number} × ${says}`;
  for (const { source, detail } of examples) yield `      ${printable(source)}: ${printable(detail)}`;
}
