import type { Command } from "commander";
import { BULK_JSON, type BulkOptions, bulk, withBulkOptions } from "../bulk-jobs.ts";
import { countNumber, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { jobTable } from "../output/job-table.ts";
import { act, type TargetContext } from "../run-command.ts";
import {
  actionFilter,
  type FilterOptions,
  filterFields,
  withErrorFilters,
  withFilters,
} from "../target/filter-options.ts";
import { type Fields, type Query, Refusal } from "../target/target.ts";

const PATH = "/ojs/v1/admin/dead-letter";
const ID = "0198f7e2-7b1c-7000-8000-000000000001";
const PAGE = 200;

export function register(dead: Command): void {
  dead.description("Dead letters: jobs that failed for good and are kept until you retry or delete them.");
  declareList(dead.command("ls"));
  declareAction(dead.command("retry"), "retry", "Run dead letters again: their attempts start anew.");
  declareAction(dead.command("delete"), "delete", "Delete dead letters for good.");
}

function declareList(command: Command): void {
  command.description("List dead letters, the last to end first.");
  withFilters(withTarget(command), ["state"]).option("--limit <count>", "at most this many", countNumber, 50);
  withPage(command, {
    examples: [
      ["dead ls", "the newest 50"],
      ["dead ls --queue payments --since 1d", "of one queue, created in the last day"],
    ],
    json: '{"items":[job],"has_more"}; a job as in docs/openapi.json',
  });
  act<FilterOptions & { readonly limit: number }>(command, async ({ target, output }, options) => {
    const filter = filterFields(options, target.now()) as Query;
    const items: Fields[] = [];
    let cursor: unknown = null;
    do {
      const page = await target.get(PATH, {
        ...filter,
        per_page: Math.max(1, Math.min(PAGE, options.limit - items.length)),
        ...(cursor !== null && { cursor: String(cursor) }),
      });
      items.push(...(page.items as Fields[]));
      cursor = (page.pagination as Fields).next_cursor;
    } while (cursor !== null && items.length < options.limit);
    output.answer({ items, has_more: cursor !== null }, () =>
      items.length === 0 ? "No dead letters." : jobTable(items, target.now()),
    );
  });
}

function declareAction(command: Command, action: "retry" | "delete", says: string): void {
  command.description(says).argument("[ids...]", "their ids; without any, the filters say which");
  withBulkOptions(withErrorFilters(withFilters(withTarget(command), ["state"]))).option(
    "--all",
    "every dead letter",
  );
  withPage(command, {
    examples: [
      [`dead ${action} ${ID}`, "one of them"],
      [`dead ${action} --error-code timeout --dry-run`, "how many have this error"],
      [`dead ${action} --queue payments --yes`, "all of a queue, without a question"],
    ],
    json: BULK_JSON,
  });
  act<FilterOptions & BulkOptions>(command, async (context, options, ids) => {
    if (ids.length > 0) return named(context, action, ids, options);
    const { all: _all, ...filter } = actionFilter(options, context.target.now());
    return bulk(context, action, { ...filter, dead_letter: true }, options);
  });
}

async function named(
  { target, output, signal }: TargetContext,
  action: "retry" | "delete",
  ids: readonly string[],
  options: BulkOptions,
): Promise<void> {
  const counts = { matched: ids.length, succeeded: 0, skipped: 0, failed: 0 };
  const problems: Refusal[] = [];
  const body = options.reason === undefined ? {} : { reason: options.reason };
  for (const id of ids) {
    if (signal.aborted) break;
    const path = `${PATH}/${encodeURIComponent(id)}`;
    try {
      if (options.dryRun) await target.get(path);
      else if (action === "retry") await target.send("POST", `${path}/retry`, body);
      else await target.send("DELETE", path);
      if (!options.dryRun) counts.succeeded += 1;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      counts.failed += 1;
      problems.push(error);
    }
  }
  const isComplete = !signal.aborted;
  output.answer({ action, dry_run: options.dryRun === true, ...counts, is_complete: isComplete }, () =>
    options.dryRun
      ? `${ids.length - counts.failed} of ${ids.length} dead letters are there; nothing was changed.`
      : `${counts.succeeded} of ${ids.length} dead letters ${action === "retry" ? "retried" : "deleted"}.`,
  );
  if (!isComplete) throw new CommandFailed("interrupted", "stopped; the others are unchanged");
  const [first] = problems;
  if (first) throw new CommandFailed(first.exit, problems.map(({ message }) => message).join("\ncurfew: "));
}
