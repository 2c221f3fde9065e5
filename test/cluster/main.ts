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
const deaths = report.faults.filter(({ elected }) => elected !== null);
const late = deaths.filter(({ back }) => back > BACK_WITHIN).length;
if (late > 0)
  findings.push(`${late} of ${deaths.length} failovers took longer than ${BACK_WITHIN / 1_000} s`);
const noticed = deaths.map(({ back, elected }) => Math.max(0, back - (elected as number)));
console.log(`noticed within ${Math.round(Math.max(...noticed))} ms after the election`);
const { acknowledged, lost, unfinished, repeated, takenBack, doubleVerdicts } = report;
console.log(
  `${faults.length} faults on ${report.server}, ${acknowledged} jobs acknowledged, ${lost} lost, ${unfinished} unfinished, ${takenBack} verdicts taken back, ${doubleVerdicts} double verdicts, ${repeated} jobs ran more than once, ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
);
if (lost > 0 && durability === "replicated") findings.push(`${lost} acknowledged jobs are lost`);
if (takenBack > 0 && durability === "replicated") findings.push(`${takenBack} verdicts were taken back`);
if (unfinished > 0) findings.push(`${unfinished} acknowledged jobs did not end`);
if (doubleVerdicts > 0) findings.push(`${doubleVerdicts} jobs have two verdicts`);
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
    doubled: doubleVerdicts,
    repeated,
    unfinished,
  },
  worst: { ...worst, noticed: Math.round(Math.max(...noticed)) },
  findings,
});
process.exitCode = findings.length === 0 ? 0 : 1;
