import type { Command } from "commander";
import { countNumber, REASON } from "./declare.ts";
import { CommandFailed } from "./exit.ts";
import { confirm } from "./output/confirm.ts";
import { jobTable } from "./output/job-table.ts";
import type { TargetContext } from "./run-command.ts";
import type { Fields, Query, Refusal } from "./target/target.ts";

const JOBS = "/ojs/v1/admin/jobs";
/** Jobs per request: small, so that Ctrl-C takes effect soon and the progress line moves. */
const BATCH = 200;
const SAMPLE = 5;

export interface BulkOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly limit?: number;
  readonly reason?: string;
}

export function withBulkOptions(command: Command): Command {
  return command
    .option("--dry-run", "count the jobs, show the first of them, and change nothing")
    .option("-y, --yes", "do not ask")
    .option("--limit <count>", "stop after this many", countNumber)
    .option(...REASON);
}

const DONE = { cancel: "cancelled", retry: "retried", delete: "deleted" } as const;
export type BulkVerb = keyof typeof DONE;

interface Counts {
  matched: number;
  succeeded: number;
  skipped: number;
  failed: number;
}

/** What `--json` prints for an action on many jobs. */
export const BULK_JSON =
  '{"action","dry_run","matched","succeeded","skipped","failed","is_complete"}; with --dry-run also "sample": the first jobs';

/** Acts on all jobs that match a filter: shows them, asks, acts in batches, and prints a summary. */
export async function bulk(
  context: TargetContext,
  verb: BulkVerb,
  filter: Fields,
  options: BulkOptions,
): Promise<void> {
  const { target, output, signal } = context;
  const path = `${JOBS}/bulk/${verb}`;
  const counted = await output.during("counting", () => target.send("POST", path, { filter, dry_run: true }));
  signal.throwIfAborted();
  // A delete counts jobs that wait or run as matched and skipped: it does not touch them.
  const live = verb === "delete" ? Number(counted.skipped) : 0;
  const matched = Number(counted.matched) - live;
  if (options.dryRun || matched === 0) {
    const sample = matched === 0 ? [] : await sampleOf(context, verb, filter);
    const answer = {
      ...summary(verb, { matched, succeeded: 0, skipped: live, failed: 0 }, true),
      dry_run: options.dryRun === true,
    };
    output.answer({ ...answer, sample }, () => previewText(verb, { matched, live }, sample, target.now()));
    return;
  }
  const meant = options.limit === undefined ? matched : Math.min(matched, options.limit);
  if (!options.yes) {
    const sample = await sampleOf(context, verb, filter);
    output.note(previewText(verb, { matched, live }, sample, target.now()));
  }
  await confirm(`${capital(verb)} ${meant} ${meant === 1 ? "job" : "jobs"} on ${target.name}?`, {
    yes: options.yes,
    signal,
  });
  await carryOut(context, {
    verb,
    path,
    filter,
    meant,
    most: options.limit ?? Number.POSITIVE_INFINITY,
    reason: options.reason,
  });
}

interface Work {
  readonly verb: BulkVerb;
  readonly path: string;
  readonly filter: Fields;
  readonly meant: number;
  /** The most jobs to act on. Without --limit, jobs that came after the count are included. */
  readonly most: number;
  readonly reason: string | undefined;
}

async function carryOut({ target, output, signal }: TargetContext, work: Work): Promise<void> {
  const { verb, path, filter, meant, most, reason } = work;
  const counts: Counts = { matched: 0, succeeded: 0, skipped: 0, failed: 0 };
  let isComplete = false;
  await output.during(verb, async (progress) => {
    for (let cursor: unknown = null; !signal.aborted; ) {
      const reply = await target.send("POST", path, {
        filter,
        confirm: true,
        limit: Math.min(BATCH, most - counts.succeeded),
        ...(cursor !== null && { cursor }),
        reason,
      });
      add(counts, reply, verb);
      progress.update(counts.succeeded + (verb === "delete" ? 0 : counts.skipped), meant);
      cursor = reply.next_cursor;
      isComplete = cursor === null;
      if (isComplete || counts.succeeded >= most || counts.failed > 0) break;
    }
  });
  const isStopped = !isComplete && signal.aborted;
  output.answer(summary(verb, counts, isComplete), () => summaryText(verb, counts));
  if (isStopped)
    throw new CommandFailed(
      "interrupted",
      `stopped: ${counts.succeeded} of ${meant} jobs are ${DONE[verb]}, the others are unchanged; run it again to continue`,
    );
  if (counts.failed > 0)
    throw new CommandFailed(
      "unreachable",
      `${counts.failed} jobs failed in the store and are unchanged; run it again`,
    );
}

interface NamedWork {
  readonly verb: BulkVerb;
  readonly ids: readonly string[];
  readonly options: BulkOptions;
  /** Acts on one of them; with `--dry-run`, only reads it. */
  readonly each: (id: string) => Promise<unknown>;
  readonly noun: string;
  /** What a dry run says of those that were found. */
  readonly found: string;
  /** Failures of this kind are reported at the end; others end the command. */
  readonly problem: typeof CommandFailed | typeof Refusal;
}

/** Acts on each id, and reports the failures at the end. */
export async function actOnNamed({ output, signal }: TargetContext, work: NamedWork): Promise<void> {
  const { verb, ids, options, each, noun, found, problem } = work;
  const counts: Counts = { matched: ids.length, succeeded: 0, skipped: 0, failed: 0 };
  const problems: CommandFailed[] = [];
  for (const id of ids) {
    if (signal.aborted) break;
    try {
      await each(id);
      if (!options.dryRun) counts.succeeded += 1;
    } catch (error) {
      if (!(error instanceof problem)) throw error;
      problems.push(error);
      counts.failed += 1;
    }
  }
  const isComplete = !signal.aborted;
  output.answer({ ...summary(verb, counts, isComplete), dry_run: options.dryRun === true }, () =>
    options.dryRun
      ? `${ids.length - counts.failed} of ${ids.length} ${noun} ${found}; nothing was changed.`
      : `${counts.succeeded} of ${ids.length} ${noun} ${DONE[verb]}.`,
  );
  if (!isComplete) throw new CommandFailed("interrupted", "stopped; the others are unchanged");
  const [first] = problems;
  if (first) throw new CommandFailed(first.exit, problems.map(({ message }) => message).join("\ncurfew: "));
}

function add(counts: Counts, reply: Fields, verb: BulkVerb): void {
  const skipped = Number(reply.skipped);
  // Each reply to a delete counts all jobs that wait or run, so the last one says how many they are.
  counts.matched += verb === "delete" ? Number(reply.matched) - skipped : Number(reply.matched);
  counts.skipped = verb === "delete" ? skipped : counts.skipped + skipped;
  counts.succeeded += Number(reply.succeeded);
  // The reply counts a skipped job as failed too.
  counts.failed += Number(reply.failed) - Number(reply.skipped);
}

function summary(verb: BulkVerb, counts: Counts, isComplete: boolean) {
  return { action: verb, dry_run: false, ...counts, is_complete: isComplete };
}

/** The states in which an action applies. */
const TOUCHED: Readonly<Record<BulkVerb, readonly string[]>> = {
  cancel: ["scheduled", "available", "pending", "active", "retryable"],
  retry: ["discarded"],
  delete: ["completed", "cancelled", "discarded"],
};

/** Some of the newest matching jobs. Lists cannot filter by error, so with such a filter there is no sample. */
async function sampleOf(
  { target }: TargetContext,
  verb: BulkVerb,
  filter: Fields,
): Promise<readonly Fields[]> {
  const { error_type, error_code, dead_letter, all: _all, ...rest } = filter;
  if (error_type !== undefined || error_code !== undefined) return [];
  const read = async (path: string, more: Query = {}) =>
    (await target.get(path, { ...(rest as Query), ...more, per_page: SAMPLE })).items as readonly Fields[];
  if (dead_letter) return read("/ojs/v1/admin/dead-letter");
  // Asked for by state: among the newest jobs of any state there may be none that the action applies to.
  const states = rest.state === undefined ? TOUCHED[verb] : [String(rest.state)];
  const found = await Promise.all(states.map((state) => read(JOBS, { state })));
  const createdAt = (job: Fields) => String(job.created_at);
  return found
    .flat()
    .sort((a, b) => createdAt(b).localeCompare(createdAt(a)))
    .slice(0, SAMPLE);
}

function previewText(
  verb: BulkVerb,
  { matched, live }: { readonly matched: number; readonly live: number },
  sample: readonly Fields[],
  now: number,
): string {
  const kept = live > 0 ? `\n${liveText(live)}: cancel them first.` : "";
  if (matched === 0) return `No jobs to ${verb}.${kept}`;
  const head = `${matched} ${matched === 1 ? "job" : "jobs"} to ${verb}`;
  if (sample.length === 0) return `${head}.${kept}`;
  const more = matched > sample.length ? `\n… and ${matched - sample.length} more` : "";
  return `${head}:\n${jobTable(sample, now)}${more}${kept}`;
}

const liveText = (count: number) =>
  count === 1 ? "1 other waits or runs and stays" : `${count} others wait or run and stay`;

function summaryText(verb: BulkVerb, { succeeded, skipped, failed }: Counts): string {
  const parts = [
    `${succeeded} ${succeeded === 1 ? "job" : "jobs"} ${DONE[verb]}`,
    ...(skipped > 0
      ? [verb === "delete" ? liveText(skipped) : `${skipped} had changed state meanwhile and are unchanged`]
      : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${parts.join(", ")}.`;
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
