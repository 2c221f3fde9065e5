import type { Command } from "commander";
import { parseDuration } from "../../core/time.ts";
import { withPage, withTarget } from "../declare.ts";
import { instantOption } from "../filters.ts";
import { paint, printable } from "../output/paint.ts";
import { type Column, tableText } from "../output/table.ts";
import { spanText } from "../output/times.ts";
import { wrapText } from "../output/wrap.ts";
import { act } from "../run-command.ts";
import type { Fields } from "../target.ts";

interface AdviseOptions {
  readonly type?: string;
  readonly queue?: string;
  readonly since?: string;
  readonly attempt?: string;
}

export function register(command: Command): void {
  command.description("Suggest an attempt timeout for each job type, from the runs that were seen.");
  withTarget(command)
    .option("--type <type>", "only this type")
    .option("--queue <name>", "only jobs of this queue")
    .option("--since <time>", "only runs since then: 2h, 7d ago, or an instant")
    .option("--attempt <duration>", "say how many runs this timeout would have cut off");
  withPage(command, {
    examples: [
      ["advise", "all types"],
      ["advise --type card.charge --attempt 10s", "what if its timeout were 10 seconds?"],
    ],
    json: '{"items":[{"type","verdict","text","timeout_ms","suggested_timeout_ms","run","near_misses","timeouts","what_if"?,…}]}',
  });
  act<AdviseOptions>(command, async ({ target, output }, { type, queue, since, attempt }) => {
    const { items } = await target.get("/ojs/v1/admin/advise", {
      type,
      queue,
      since: since === undefined ? undefined : instantOption(since, target.now(), "--since"),
      timeout_ms: attempt === undefined ? undefined : parseDuration(attempt, "--attempt"),
    });
    const rows = items as readonly Fields[];
    output.answer({ items }, () => (rows.length === 0 ? "No runs were seen." : adviceText(rows)));
  });
}

const ms = (value: unknown, missing = "-") => (typeof value === "number" ? spanText(value) : missing);

const VERDICTS: Readonly<Record<string, Parameters<typeof paint>[0]>> = {
  raise: "yellow",
  set: "yellow",
  lower: "cyan",
  keep: "green",
};

const COLUMNS: readonly Column<Fields>[] = [
  { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 12 },
  {
    title: "VERDICT",
    show: ({ verdict }) => paint(VERDICTS[String(verdict)] ?? "dim", String(verdict)),
  },
  { title: "TIMEOUT", show: ({ timeout_ms }) => ms(timeout_ms, "none"), align: "right" },
  { title: "SUGGESTED", show: ({ suggested_timeout_ms }) => ms(suggested_timeout_ms), align: "right" },
  { title: "P50", show: ({ run }) => ms((run as Fields | null)?.p50), align: "right", drop: 2 },
  { title: "P99", show: ({ run }) => ms((run as Fields | null)?.p99), align: "right" },
  { title: "NEAR MISSES", show: ({ near_misses }) => String(near_misses), align: "right", drop: 3 },
  {
    title: "TIMEOUTS",
    show: ({ timeouts }) => String((timeouts as Fields).execution),
    align: "right",
    drop: 1,
  },
];

export function adviceText(rows: readonly Fields[]): string {
  // Types with the same advice share a line.
  const byText = Map.groupBy(rows, ({ text }) => String(text));
  const texts = [...byText].map(([text, same]) => {
    const types = same.map(({ type }) => printable(String(type))).join(", ");
    return wrapText(`${types}: ${printable(text)}`, "", "  ");
  });
  return [tableText(COLUMNS, rows), "", ...texts].join("\n");
}
