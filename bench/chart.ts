/**
 * `npm run bench:chart [-- results.json]`: draws the drain of the last full run as docs/guides/images/drain.svg, for the README.
 * One bar for each contender and server: jobs per second, and beside it what a job costs in CPU.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { medianOf, type Row } from "./report.ts";

const RESULTS = process.argv[2] ?? join(import.meta.dirname, "results.json");
export const CHART = join(import.meta.dirname, "..", "docs", "guides", "images", "drain.svg");
const WORKLOAD = "drain-10";

const LABEL = 250;
const BAR = 330;
const LINE = 24;
const WIDTH = LABEL + BAR + 190;
const COLOURS = { curfew: "#2563eb", peer: "#94a3b8", floor: "#cbd5e1", variant: "#93c5fd" };

interface Results {
  readonly workloads: Readonly<Record<string, { readonly at: string; readonly rows: readonly Row[] }>>;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function barOf(row: Row, y: number, most: number): string {
  const rate = medianOf(row, "rate");
  const cost = medianOf(row, "node") + (Number.isNaN(medianOf(row, "server")) ? 0 : medianOf(row, "server"));
  const width = Math.max(1, (rate / most) * BAR);
  return [
    `<text x="${LABEL - 8}" y="${y + 16}" text-anchor="end">${escaped(`${row.server}: ${row.name}`)}</text>`,
    `<rect x="${LABEL}" y="${y + 4}" width="${width.toFixed(1)}" height="16" rx="2" fill="${COLOURS[row.role]}"/>`,
    `<text x="${LABEL + width + 6}" y="${y + 16}">${Math.round(rate).toLocaleString("en")}/s · ${cost.toFixed(0)} µs</text>`,
  ].join("\n");
}

/** The chart of some rows; raw SQL is left out, because it is no queue. */
export function chartOf(rows: readonly Row[], title: string): string {
  const shown = rows
    .filter(({ role, samples }) => (role === "curfew" || role === "peer") && samples.length > 0)
    .sort((a, b) => a.server.localeCompare(b.server) || medianOf(b, "rate") - medianOf(a, "rate"));
  const most = Math.max(...shown.map((row) => medianOf(row, "rate")));
  const height = shown.length * LINE + 44;
  const bars = shown.map((row, index) => barOf(row, 34 + index * LINE, most));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" font-family="system-ui, sans-serif" font-size="13" fill="#334155">
<title>${escaped(title)}</title>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
<text x="8" y="20" font-size="14" font-weight="600">${escaped(title)}</text>
${bars.join("\n")}
</svg>
`;
}

if (process.argv[1] === import.meta.filename) {
  const { workloads } = JSON.parse(readFileSync(RESULTS, "utf8")) as Results;
  const result = workloads[WORKLOAD];
  if (!result) throw new Error(`${RESULTS} has no ${WORKLOAD}: run npm run bench -- --full first`);
  writeFileSync(CHART, chartOf(result.rows, "Jobs drained per second at concurrency 10, and CPU per job"));
  console.log(CHART);
}
