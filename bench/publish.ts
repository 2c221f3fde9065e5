/**
 * `npm run bench:publish`: one run of minutes that takes all contenders in turn on PostgreSQL 15 and 18, SQLite and Redis, then
 * the HTTP server, and writes docs/benchmarks.json, the tables of docs/benchmarks.md, the chart and its place in the README.
 * `-- --minutes 7` begins no further part after that time; `-- --only drain-10` measures one part again, such as one that other programs
 * disturbed; `-- --write` measures nothing and writes the pages from the file.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CHART, chartOf } from "./chart.ts";
import { CONTENDERS, keyOf } from "./contenders/all.ts";
import { goalTable } from "./goal-table.ts";
import { type LastRun, sectionOf } from "./last-run.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "7" },
    only: { type: "string" },
    write: { type: "boolean", default: false },
  },
});

const root = join(import.meta.dirname, "..");
const FILE = join(root, "docs", "benchmarks.json");
const DRAIN = "drain-10";
/** The most telling ones first, because the time may end. */
const PARTS: readonly { readonly workload: string; readonly rounds: number }[] = [
  { workload: DRAIN, rounds: 3 },
  { workload: "bulk", rounds: 3 },
  { workload: "single", rounds: 3 },
  { workload: "http", rounds: 2 },
  { workload: "pickup", rounds: 1 },
];

function measure(): void {
  const folder = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  const until = performance.now() + Number(values.minutes) * 60_000;
  const skipped: string[] = [];
  const parts = PARTS.filter(({ workload }) => values.only === undefined || workload === values.only);
  if (parts.length === 0) throw new Error(`--only: there is no part ${JSON.stringify(values.only)}`);
  if (values.only !== undefined) keepOthers(folder);
  for (const { workload, rounds } of parts) {
    if (performance.now() >= until) skipped.push(workload);
    else if (workload === "http") measureServer(join(folder, "http.json"), rounds);
    else measureWorkload(join(folder, "run.json"), workload, rounds);
  }
  const run: LastRun = {
    ...(readJson(join(folder, "run.json")) as Pick<LastRun, "workloads"> | undefined),
    http: readJson(join(folder, "http.json")) as LastRun["http"],
    skipped,
  };
  rmSync(folder, { recursive: true });
  writeFileSync(FILE, `${JSON.stringify(run, null, 1)}\n`);
}

/** Parts that are not measured again stay as they were. */
function keepOthers(folder: string): void {
  const { http, ...run } = (readJson(FILE) ?? {}) as LastRun;
  writeFileSync(join(folder, "run.json"), JSON.stringify(run));
  if (http) writeFileSync(join(folder, "http.json"), JSON.stringify(http));
}

function measureWorkload(out: string, workload: string, rounds: number): void {
  const contenders = CONTENDERS.filter(({ role }) => role !== "variant").map(keyOf);
  node(["bench/main.ts", workload, ...contenders, "--rounds", String(rounds), "--out", out]);
}

function measureServer(out: string, rounds: number): void {
  node([
    "bench/server.ts",
    "--shape",
    "16 clients",
    "--seconds",
    "2",
    "--rounds",
    String(rounds),
    "--out",
    out,
  ]);
}

/** A part that fails leaves its place in the tables empty, and the others stay. */
function node(args: readonly string[]): void {
  const env = { ...process.env, BENCH_SHORT: "1" };
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
  if (status !== 0) console.error(`${args[0]} ${args[1]} ended with ${status}`);
}

function readJson(file: string): unknown {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

/** Puts text between two marks of a page. */
function place(page: string, name: string, text: string): void {
  const file = join(root, page);
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const before = readFileSync(file, "utf8");
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${page} has no ${begin} … ${end}`);
  writeFileSync(file, `${before.slice(0, from)}${begin}\n\n${text}\n\n${before.slice(to)}`);
}

function write(): void {
  const run = readJson(FILE) as LastRun | undefined;
  if (!run) throw new Error(`there is no ${FILE}: run npm run bench:publish first`);
  place("docs/benchmarks.md", "goals", goalTable(run));
  place("docs/benchmarks.md", "last run", sectionOf(run));
  const drained = run.workloads?.[DRAIN];
  if (!drained) return;
  writeFileSync(CHART, chartOf(drained.rows, "Jobs drained per second at concurrency 10, and CPU per job"));
  const chart =
    "[![Jobs drained per second, beside other queues](docs/guides/images/drain.svg)](docs/benchmarks.md)";
  place("README.md", "chart", chart);
}

if (!values.write) measure();
write();
