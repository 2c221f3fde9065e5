import type { Command } from "commander";
import { actOnNamed, BULK_JSON, type BulkOptions, bulk, withBulkOptions } from "../bulk-jobs.ts";
import { countNumber, withPage, withTarget } from "../declare.ts";
import { jobTable } from "../output/job-table.ts";
import { act, type TargetContext } from "../run-command.ts";
import {
  actionFilter,
  type FilterOptions,
  filterFields,
  withErrorFilters,
  withFilters,
} from "../target/filter-options.ts";
import { readItems } from "../target/read-items.ts";
import { type Query, Refusal } from "../target/target.ts";

const PATH = "/ojs/v1/admin/dead-letter";
const ID = "0198f7e2-7b1c-7000-8000-000000000001";

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
    const { items, has_more } = await readItems(target, PATH, filter, {
      most: options.limit,
      size: "per_page",
    });
    output.answer({ items, has_more }, () =>
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
  context: TargetContext,
  verb: "retry" | "delete",
  ids: readonly string[],
  options: BulkOptions,
): Promise<void> {
  const { target } = context;
  const each = (id: string) => {
    const path = `${PATH}/${encodeURIComponent(id)}`;
    if (options.dryRun) return target.get(path);
    if (verb === "delete") return target.send("DELETE", path);
    return target.send("POST", `${path}/retry`, { reason: options.reason });
  };
  const words = { noun: "dead letters", found: "are there", problem: Refusal };
  await actOnNamed(context, { verb, ids, options, each, ...words });
}
