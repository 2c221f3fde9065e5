import type { Command } from "commander";
import { CurfewError } from "../../core/errors.ts";
import { parseAdaptive, type Quantile } from "../../core/stats/adaptive-limit.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import { withPage, withTarget } from "../declare.ts";
import { paint, printable } from "../output/paint.ts";
import { type Column, tableText } from "../output/table.ts";
import { spanText } from "../output/times.ts";
import { wrapText } from "../output/wrap.ts";
import { act } from "../run-command.ts";
import { instantOption } from "../target/filter-options.ts";
import type { Fields } from "../target/target.ts";

interface AdviseOptions {
  readonly type?: string;
  readonly queue?: string;
  readonly since?: string;
  readonly attempt?: string;
  readonly floor?: string;
  readonly ceiling?: string;
  readonly from?: string;
  readonly times?: string;
  readonly samples?: string;
}

export function register(command: Command): void {
  command.description("Suggest an attempt timeout for each job type, from the runs that were seen.");
  withTarget(command)
    .option("--type <type>", "only this type")
    .option("--queue <name>", "only jobs of this queue")
    .option("--since <time>", "only runs since then: 2h, 7d ago, or an instant")
    .option("--attempt <duration>", "say how many runs this timeout would have cut off")
    .option(
      "--floor <duration>",
      "replay an adaptive timeout that is never shorter; needs --type and --ceiling",
    )
    .option("--ceiling <duration>", "and never longer")
    .option("--from <quantile>", "of which run time: p50, p90, p95, p99 or max (default p99)")
    .option("--times <number>", "how many times as long (default 3)")
    .option("--samples <number>", "how many runs it needs (default 200)");
  withPage(command, {
    examples: [
      ["advise", "all types"],
      ["advise --type card.charge --attempt 10s", "what if its timeout were 10 seconds?"],
      ["advise --type card.charge --floor 2s --ceiling 1m", "what if it followed the runs?"],
    ],
    json: '{"items":[{"type","verdict","text","timeout_ms","suggested_timeout_ms","run","near_misses","timeouts","adaptive","what_if"?,"adaptive_what_if"?,…}]}',
  });
  act<AdviseOptions>(command, async ({ target, output }, options) => {
    const { type, queue, since, attempt, floor, ceiling, from, times, samples } = options;
    const span = (text: string | undefined, flag: string) =>
      text === undefined ? undefined : parseDuration(text, flag);
    checkRule(options);
    const { items } = await target.get("/ojs/v1/admin/advise", {
      type,
      queue,
      since: since === undefined ? undefined : instantOption(since, target.now(), "--since"),
      timeout_ms: span(attempt, "--attempt"),
      adaptive_floor_ms: span(floor, "--floor"),
      adaptive_ceiling_ms: span(ceiling, "--ceiling"),
      adaptive_from: from,
      adaptive_times: times,
      adaptive_samples: samples,
    });
    const rows = items as readonly Fields[];
    output.answer({ items }, () => (rows.length === 0 ? "No runs were seen." : adviceText(rows)));
  });
}

/** A text that is no number stays as it is, for the refusal to show. */
const numberOf = (text: string) => (Number.isNaN(Number(text)) ? (text as never) : Number(text));

const NEEDED = "--type, --floor and --ceiling";

/** Refuses a rule in the words of the command line; the server would name its own fields. */
function checkRule({ type, floor, ceiling, from, times, samples }: AdviseOptions): void {
  const given = { floor, ceiling, from, times, samples };
  const [flag] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (flag === undefined) return;
  for (const [name, value] of Object.entries({ type, floor, ceiling }))
    if (value === undefined)
      throw new CurfewError("invalid_option", `--${name}: it is missing; add it: ${NEEDED} go together`, {
        field: `--${name}`,
      });
  const rule = {
    floor: floor as Duration,
    ceiling: ceiling as Duration,
    ...(from !== undefined && { from: from as Quantile }),
    ...(times !== undefined && { times: numberOf(times) }),
    ...(samples !== undefined && { samples: numberOf(samples) }),
  };
  try {
    parseAdaptive(rule, "rule");
  } catch (error) {
    if (!(error instanceof CurfewError)) throw error;
    const [field, message] = [error.field, error.message].map((text) => text?.replaceAll("rule.", "--"));
    throw new CurfewError(error.code, message as string, {
      ...(field !== undefined && { field }),
      cause: error,
    });
  }
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
  const proposals = rows.flatMap(({ type, adaptive }) => {
    const { code } = (adaptive ?? {}) as Fields;
    return code === undefined
      ? []
      : [wrapText(`${printable(String(type))}: ${printable(String(code))}`, "  ", "    ")];
  });
  const adaptive =
    proposals.length === 0 ? [] : ["", "Limits that follow the runs (see --floor):", ...proposals];
  return [tableText(COLUMNS, rows), "", ...texts, ...rows.flatMap(whatIfText), ...adaptive].join("\n");
}

/** What a limit to try would have done. */
function whatIfText({ what_if, adaptive_what_if }: Fields): string[] {
  const fixed = what_if as Fields | undefined;
  const learned = adaptive_what_if as Fields | undefined;
  const texts: string[] = [];
  if (fixed) texts.push(`With ${ms(fixed.timeout_ms)}: ${cutText(fixed)}.`);
  if (learned) {
    const { limit_ms, lowest_ms, highest_ms } = learned;
    const way = `it would be ${ms(limit_ms)} now, and was between ${ms(lowest_ms)} and ${ms(highest_ms)}`;
    texts.push(`Adaptive: ${cutText(learned)}; ${way}.`);
  }
  return texts.map((text) => wrapText(text, "", "  "));
}

function cutText({ runs, would_cut, already_cut }: Fields): string {
  const { at_least, at_most } = would_cut as Fields;
  const cut = at_least === at_most ? `${at_most}` : `${at_least} to ${at_most}`;
  return `${cut} of ${runs} successful runs would have been cut off (${already_cut} were cut off by the limit they had)`;
}
