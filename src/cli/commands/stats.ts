import { type Command, Option } from "commander";
import { withPage, withTarget } from "../declare.ts";
import { dim, printable } from "../output/paint.ts";
import { type Column, fieldsText, tableText } from "../output/table.ts";
import { spanText } from "../output/times.ts";
import { act, type TargetContext } from "../run-command.ts";
import { instantOption } from "../target/filter-options.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/admin/stats";
const PERIODS = ["1m", "5m", "15m", "1h", "6h", "1d"] as const;

interface StatsOptions {
  readonly queue?: string;
  readonly type?: string;
  readonly since?: string;
  readonly step: string;
}

export function register(command: Command): void {
  command.description("Say how much there is to do, how much was done, and how late deadlines fire.");
  withTarget(command)
    .option("--queue <name>", "only of this queue")
    .option("--since <time>", "also a line per step since then: 6h, 7d ago, or an instant")
    .addOption(new Option("--step <step>", "how long a step is").choices(PERIODS).default("5m"))
    .option("--type <type>", "the steps count only jobs of this type");
  withPage(command, {
    examples: [
      ["stats", "as it is now"],
      ["stats --since 6h --step 15m", "and how it was in the last six hours"],
      ["stats --queue payments --json", "one queue, for a program"],
    ],
    json: '{"jobs","throughput","timeouts_per_minute","deadline_lateness","oldest_waits",…,"history"?:[{"timestamp","completed","failed",…}]}',
  });
  act<StatsOptions>(command, stats);
}

async function stats({ target, output }: TargetContext, options: StatsOptions): Promise<void> {
  const { queue, type, since, step } = options;
  const now = await target.get(PATH, { queue });
  if (since === undefined) {
    output.answer(now, () => nowText(now));
    return;
  }
  const from = instantOption(since, target.now(), "--since");
  const { data } = await target.get(`${PATH}/history`, { queue, type, since: from, period: step });
  const points = data as readonly Fields[];
  output.answer({ ...now, history: points }, () => `${nowText(now)}\n\n${historyText(points)}`);
}

function nowText(stats: Fields): string {
  const jobs = stats.jobs as Fields;
  const { processed_per_minute, failed_per_minute, enqueued_per_minute } = stats.throughput as Fields;
  const timeouts = Object.entries(stats.timeouts_per_minute as Fields).filter(
    ([, count]) => Number(count) > 0,
  );
  const oldest = (stats.oldest_waits as readonly Fields[])
    .filter(({ wait_ms }) => typeof wait_ms === "number")
    .sort((a, b) => Number(b.wait_ms) - Number(a.wait_ms))
    .slice(0, 3)
    .map(({ queue, wait_ms }) => `${spanText(Number(wait_ms))} in ${printable(String(queue))}`);
  return fieldsText([
    [
      "waiting",
      `${jobs.available} ready, ${jobs.scheduled} later, ${jobs.retryable} to retry, ${jobs.pending} held`,
    ],
    ["running", `${jobs.active} on ${stats.workers} workers, in ${stats.queues} queues`],
    ["last 24h", `${jobs.completed} completed, ${jobs.discarded} discarded, ${jobs.cancelled} cancelled`],
    [
      "per minute",
      `${enqueued_per_minute} enqueued, ${processed_per_minute} processed, ${failed_per_minute} failed ${dim("(mean of 5 minutes)")}`,
    ],
    [
      "timeouts",
      timeouts.length === 0
        ? "none in the last 5 minutes"
        : timeouts.map(([kind, count]) => `${kind} ${count} per minute`).join(", "),
    ],
    ["oldest wait", oldest.length === 0 ? "nothing waits" : oldest.join(", ")],
    ["lateness", latenessText(stats.deadline_lateness as Fields)],
  ]);
}

/** How late deadlines fired in the process that was asked. */
export function latenessText({ bounds_ms, counts, sum_ms, total }: Fields): string {
  const all = Number(total);
  if (all === 0) return "no deadline fired in the process that was asked";
  const bounds = bounds_ms as readonly number[];
  let seen = 0;
  const at = (counts as readonly number[]).findIndex((count) => {
    seen += count;
    return seen >= all * 0.99;
  });
  const bound = bounds[at];
  const p99 = bound === undefined ? `over ${spanText(bounds.at(-1) ?? 0)}` : `at most ${spanText(bound)}`;
  return `${all} deadlines fired, ${spanText(Number(sum_ms) / all)} late on average, 99 % ${p99}`;
}

const count =
  (field: string): Column<Fields>["show"] =>
  (point) =>
    String(point[field] ?? 0);

const COLUMNS: readonly Column<Fields>[] = [
  { title: "FROM", show: ({ timestamp }) => String(timestamp).slice(0, 16).replace("T", " ") },
  { title: "ENQUEUED", show: count("enqueued"), align: "right", drop: 1 },
  { title: "COMPLETED", show: count("completed"), align: "right" },
  { title: "FAILED", show: count("failed"), align: "right" },
  { title: "LATE", show: count("late"), align: "right", drop: 4 },
  { title: "TIMEOUTS", show: ({ timeouts }) => String(sumOf(timeouts)), align: "right", drop: 3 },
  { title: "P50", show: ({ latency_p50_ms }) => msText(latency_p50_ms), align: "right", drop: 5 },
  { title: "P99", show: ({ latency_p99_ms }) => msText(latency_p99_ms), align: "right", drop: 2 },
];

function sumOf(counts: unknown): number {
  return Object.values(counts as Fields).reduce<number>((sum, each) => sum + Number(each), 0);
}

function msText(value: unknown): string {
  return typeof value === "number" ? spanText(value) : "-";
}

const BAR = 20;

/** A line per step, with a bar for what was processed in it. */
function historyText(points: readonly Fields[]): string {
  const most = Math.max(1, ...points.map(({ processed }) => Number(processed)));
  const bar: Column<Fields> = {
    title: "PROCESSED",
    show: ({ processed }) => "█".repeat(Math.ceil((Number(processed) / most) * BAR)),
    drop: 6,
  };
  return tableText([...COLUMNS, bar], points);
}
