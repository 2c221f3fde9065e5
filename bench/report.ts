import type { Database, Role } from "./contender.ts";
import { median, spread } from "./measure.ts";
import type { Figures, Workload } from "./workload.ts";

/** One contender's samples under one workload. */
export interface Row {
  readonly name: string;
  readonly role: Role;
  readonly database: Database;
  /** What the table calls its server: `PostgreSQL 15`. */
  readonly server: string;
  readonly samples: readonly Figures[];
}

export function medianOf({ samples }: Row, key: string): number {
  const values = samples.map((figures) => figures[key] ?? Number.NaN);
  return values.length === 0 ? Number.NaN : median(values);
}

/** The best figure of the peers on the same server; a floor is a bound and no peer. */
export function bestPeer(
  { columns: [{ key }], lowerIsBetter }: Workload,
  rows: readonly Row[],
  server: string,
): number {
  const figures = rows
    .filter((row) => row.role === "peer" && row.server === server)
    .map((row) => medianOf(row, key))
    .filter((value) => !Number.isNaN(value));
  if (figures.length === 0) return Number.NaN;
  return lowerIsBetter ? Math.min(...figures) : Math.max(...figures);
}

/** One workload as a Markdown table, with ratios to the best peer. */
export function tableOf(workload: Workload, rows: readonly Row[]): string {
  const [first, ...others] = workload.columns;
  const titles = ["contender", first.title, "±", "÷ best peer", ...others.map(({ title }) => title)];
  const lines = rows.map((row) => {
    const figure = medianOf(row, first.key);
    const values = row.samples.map((figures) => figures[first.key] ?? Number.NaN);
    const cells = [
      `${row.server}: ${row.name}`,
      shown(figure, first.digits),
      Number.isNaN(figure) ? "–" : `${Math.round(spread(values) * 100)} %`,
      shown(figure / bestPeer(workload, rows, row.server), 2),
      ...others.map(({ key, digits }) => shown(medianOf(row, key), digits)),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const head = [`| ${titles.join(" | ")} |`, `|---|${"---:|".repeat(titles.length - 1)}`];
  return [`### ${workload.name}: ${workload.title}`, "", ...head, ...lines].join("\n");
}

function shown(value: number, digits = 0): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
