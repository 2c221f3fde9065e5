import { goalsOf } from "./goals.ts";
import { median } from "./measure.ts";
import { type Row, tableOf } from "./report.ts";
import type { ServerResult } from "./server.ts";
import { WORKLOADS } from "./workloads.ts";

interface LastWorkload {
  /** It says how many jobs there were. */
  readonly title: string;
  readonly at: string;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly machine: { readonly cpu: string; readonly cores: number; readonly node: string };
}

/** What docs/benchmarks.json holds: the last run of `npm run bench:publish`. */
export interface LastRun {
  readonly workloads?: Readonly<Record<string, LastWorkload>>;
  readonly http?: readonly ServerResult[] | undefined;
  /** Parts for which there was no time. */
  readonly skipped?: readonly string[];
}

/** Round trips a second of 16 clients with single requests; in memory, a share of a bare Node server. */
const HTTP_GOALS = { memory: 0.5, sqlite: 3_500, postgres: 2_700 } as const;

/** The tables of a run, with goals that are missed, too. */
export function sectionOf({ workloads = {}, http, skipped = [] }: LastRun): string {
  const parts: string[] = [];
  const first = Object.values(workloads)[0];
  if (first) {
    const { at, machine } = first;
    parts.push(
      `${at.slice(0, 10)}, ${machine.cores} cores (${machine.cpu}), Node ${machine.node.slice(1)}, written by \`npm run bench:publish\`.`,
    );
  }
  for (const workload of WORKLOADS) {
    const result = workloads[workload.name];
    if (!result) continue;
    const goals = goalsOf(workload.name, result.rows);
    parts.push(
      tableOf({ ...workload, title: result.title }, result.rows),
      roundsText(result),
      ...(goals.length > 0 ? [goals.join("\n")] : []),
    );
  }
  if (http?.length) parts.push(httpTable(http), httpGoals(http).join("\n"));
  if (skipped.length > 0) parts.push(`Not measured, because the time was over: ${skipped.join(", ")}.`);
  return parts.join("\n\n");
}

function roundsText({ rounds, rows }: LastWorkload): string {
  const shares = rows.flatMap(({ samples }) => samples.map(({ strangers = 0 }) => strangers * 100));
  const most = Math.round(Math.max(0, ...shares));
  const others = `Other programs had ${shares.length > 0 ? Math.round(median(shares)) : 0} % of the CPU, ${most} % at most.`;
  return `Medians of ${rounds} ${rounds === 1 ? "round" : "rounds"}. ${others}`;
}

const STORES = { memory: "memory", sqlite: "SQLite", postgres: "PostgreSQL" } as const;

function httpTable(results: readonly ServerResult[]): string {
  const rows = results.map(({ store, shape, rate, spread, cpu, database, bare, calls }) => {
    const called = Object.values({ ...calls, transaction: 0, sweep: 0 }).reduce(
      (sum, count) => sum + count,
      0,
    );
    const cells = [
      `${STORES[store]}: ${shape}`,
      Math.round(rate).toLocaleString("en"),
      `${Math.round(spread * 100)} %`,
      bare ? (rate / bare.rate).toFixed(2) : "–",
      cpu.toFixed(0),
      database === null ? "–" : database.toFixed(0),
      called.toFixed(2),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const head = "| store | round trips/s | ± | ÷ bare server | server µs | database µs | calls of the store |";
  return ["### http: round trips over HTTP", "", head, `|---|${"---:|".repeat(6)}`, ...rows].join("\n");
}

/** How each store stands, with the figure as it is shown. */
export function judgedHttp(results: readonly ServerResult[]) {
  return results.flatMap(({ store, shape, rate, bare, at }) => {
    if (shape !== "16 clients") return [];
    const goal = HTTP_GOALS[store];
    const figure = store === "memory" ? rate / (bare?.rate ?? Number.NaN) : rate;
    const says =
      store === "memory" ? `at least ${goal} of a bare server` : `at least ${goal.toLocaleString("en")}/s`;
    const shown = store === "memory" ? figure.toFixed(2) : Math.round(figure).toLocaleString("en");
    return [{ says: `${STORES[store]}, 16 clients: ${says}`, shown, isMet: figure >= goal, at }];
  });
}

function httpGoals(results: readonly ServerResult[]): string[] {
  return judgedHttp(results).map(
    ({ says, shown, isMet }) => `- ${says}: ${shown}, ${isMet ? "met" : "**missed**"}`,
  );
}
