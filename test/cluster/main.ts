/**
 * `npm run test:cluster -- [--kills 50] [--jobs 100000] [--durability replicated] [--server valkey] [--others cut,full] [--report <file>]`: a
 * cluster of three masters with two replicas each loses masters again and again, while jobs are enqueued and run. In between,
 * a master loses the links to its replicas and then dies, masters and replicas stand still, slots move, a node comes and goes, and a master is full. A ledger outside the store says
 * what was acknowledged.
 */
import { parseArgs } from "node:util";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import { runCluster } from "./cluster-run.ts";
import { FAULTS, type Fault } from "./faults.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    jobs: { type: "string", default: "100000" },
    durability: { type: "string", default: "replicated" },
    server: { type: "string", default: "valkey" },
    others: { type: "string" },
    report: { type: "string" },
  },
});

/**
 * The goal in milliseconds until jobs are acknowledged again after a master died. A machine that is busy with other
 * things needs more: then the election itself is late.
 */
const BACK_WITHIN = 3_000;
/** The goal for the part of it that is the client's. */
const OWN_WITHIN = 500;
/** A fault of another kind after this many kills. */
const KILLS_BETWEEN = 3;

const startedAt = performance.now();
const kills = wholeNumber("kills", values.kills, 1);
const jobs = wholeNumber("jobs", values.jobs, 1);
const durability = values.durability === "local" ? "local" : "replicated";
const named = values.others?.split(",");
const others = FAULTS.filter((fault) => named?.includes(fault) ?? fault !== "kill");
const faults: Fault[] = [];
for (let kill = 0; kill < kills; kill++) {
  faults.push("kill");
  if (others.length > 0 && kill % KILLS_BETWEEN === 0)
    faults.push(others[(kill / KILLS_BETWEEN) % others.length] as Fault);
}
const flavour = values.server === "redis" ? "redis" : "valkey";
const report = await runCluster({ flavour, faults, jobs, durability, onLine: (line) => console.log(line) });

const findings: string[] = [];
const worst: Record<string, number> = {};
for (const fault of FAULTS) {
  const of = report.faults.filter((result) => result.fault === fault);
  if (of.length === 0) continue;
  worst[fault] = Math.round(Math.max(...of.map(({ back }) => back)));
  console.log(`${fault}: ${of.length} times, back within ${worst[fault]} ms`);
}
const deaths = report.faults.flatMap(({ back, failover }) => (failover ? [{ back, ...failover }] : []));
/** Servers that elect late are no defect of the store, so both are goals of their own. */
const late = deaths.filter(({ back }) => back > BACK_WITHIN).length;
if (late > 0)
  findings.push(`${late} of ${deaths.length} failovers took longer than ${BACK_WITHIN / 1_000} s`);
const slow = deaths.filter(({ own }) => own > OWN_WITHIN).length;
if (slow > 0) findings.push(`${slow} of ${deaths.length} times the client took longer than ${OWN_WITHIN} ms`);
const parts = {
  failed: "servers agree",
  elected: "elected",
  ready: "ready",
  own: "the client's part",
  verdict: "from then to the first verdict",
} as const;
for (const [part, name] of Object.entries(parts)) {
  const times = deaths.map((death) => death[part as keyof typeof parts]).sort((a, b) => a - b);
  worst[part] = Math.round(times.at(-1) ?? 0);
  console.log(`${name}: half within ${times[times.length >> 1]} ms, all within ${worst[part]} ms`);
}
const { acknowledged, lost, unfinished, repeated, takenBack, broken } = report;
console.log(
  `${faults.length} faults on ${report.server}, ${acknowledged} jobs acknowledged, ${lost} lost, ${unfinished} unfinished, ${takenBack} verdicts taken back, ${broken.length} rules broken, ${repeated} jobs ran more than once, ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
);
if (lost > 0 && durability === "replicated") findings.push(`${lost} acknowledged jobs are lost`);
if (takenBack > 0 && durability === "replicated") findings.push(`${takenBack} verdicts were taken back`);
if (unfinished > 0) findings.push(`${unfinished} acknowledged jobs did not end`);
findings.push(...broken);
for (const finding of findings) console.log(finding);
addRun(values.report, "cluster", {
  command: `npm run test:cluster -- --kills ${kills} --jobs ${jobs} --durability ${durability} --server ${flavour}${values.others ? ` --others ${values.others}` : ""}`,
  on: `${report.server}, ${durability}`,
  startedAt,
  counts: {
    faults: faults.length,
    acknowledged,
    lost,
    takenBack,
    doubled: broken.length,
    repeated,
    unfinished,
  },
  worst,
  findings,
});
process.exitCode = findings.length === 0 ? 0 : 1;
