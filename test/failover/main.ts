/**
 * `npm run test:failover -- [--promotions 50] [--jobs 100000] [--asynchronous] [--programs <folder>] [--report <file>]`: a
 * primary with a standby is lost again and again, by crash, by switchover and by vanishing, while jobs are enqueued and
 * run. A ledger outside the store says what was acknowledged. `--programs` is the folder with `initdb` and `pg_ctl` of an
 * installed PostgreSQL, such as that of Debian.
 */
import { parseArgs } from "node:util";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import { type Loss, type Promotion, runFailover } from "./failover-run.ts";

const { values } = parseArgs({
  options: {
    promotions: { type: "string", default: "50" },
    jobs: { type: "string", default: "100000" },
    /** The standby may lag behind, so acknowledged jobs may be lost. They are counted, and do not fail the run. */
    asynchronous: { type: "boolean", default: false },
    programs: { type: "string" },
    report: { type: "string" },
  },
});

/** Milliseconds after the promotion within which jobs are acknowledged and run again (SEMANTICS 9). */
const LIMITS: Readonly<Record<Loss, number>> = { crash: 2_000, switchover: 2_000, vanish: 10_000 };

const startedAt = performance.now();
const promotions = wholeNumber("promotions", values.promotions, 1);
const jobs = wholeNumber("jobs", values.jobs, 1);
const report = await runFailover({
  promotions,
  jobs,
  synchronous: !values.asynchronous,
  ...(values.programs !== undefined && { programs: values.programs }),
  onLine: (line) => console.log(line),
});

const isLossAllowed = values.asynchronous;
const findings: string[] = [];
const worst: Record<string, number> = {};
for (const loss of ["crash", "switchover", "vanish"] as const) {
  const of = report.promotions.filter((promotion) => promotion.loss === loss);
  const slowest = (time: (promotion: Promotion) => number) => Math.round(Math.max(0, ...of.map(time)));
  worst[loss] = slowest(({ ran }) => ran);
  console.log(
    `${loss}: ${of.length} promotions, acknowledged again within ${slowest(({ acknowledged }) => acknowledged)} ms, ran within ${worst[loss]} ms`,
  );
  const late = of.filter(({ ran }) => ran > LIMITS[loss]).length;
  if (late > 0) findings.push(`${late} promotions by ${loss} took longer than ${LIMITS[loss] / 1_000} s`);
}
const { acknowledged, lost, unfinished, repeated, doubleVerdicts, missedEvents } = report;
console.log(
  `${report.promotions.length} promotions on PostgreSQL ${report.serverVersion}, ${acknowledged} jobs acknowledged, ${lost} lost, ${unfinished} unfinished, ${doubleVerdicts} double verdicts, ${missedEvents} events missed by the follower, ${repeated} jobs ran more than once, ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
);
if (lost > 0 && !isLossAllowed) findings.push(`${lost} acknowledged jobs are lost`);
if (unfinished > 0) findings.push(`${unfinished} acknowledged jobs did not end`);
if (doubleVerdicts > 0) findings.push(`${doubleVerdicts} jobs have two verdicts`);
if (missedEvents > 0) findings.push(`a follower missed ${missedEvents} events`);
for (const finding of findings) console.log(finding);
addRun(values.report, "failover", {
  command: `npm run test:failover -- --promotions ${promotions} --jobs ${jobs}${isLossAllowed ? " --asynchronous" : ""}${values.programs === undefined ? "" : ` --programs ${values.programs}`}`,
  on: `PostgreSQL ${report.serverVersion}, ${isLossAllowed ? "asynchronous" : "synchronous"} standby`,
  startedAt,
  counts: { promotions, acknowledged, lost, doubled: doubleVerdicts, repeated, unfinished, missedEvents },
  worst,
  findings,
});
process.exitCode = findings.length === 0 ? 0 : 1;
