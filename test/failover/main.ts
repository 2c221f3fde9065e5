/**
 * `npm run test:failover -- [--promotions 50] [--jobs 100000] [--asynchronous]`: a primary with a standby is lost again
 * and again, by crash, by switchover and by vanishing, while jobs are enqueued and run. A ledger outside the store says
 * what was acknowledged.
 */
import { parseArgs } from "node:util";
import { type Loss, type Promotion, runFailover } from "./failover-run.ts";

const { values } = parseArgs({
  options: {
    promotions: { type: "string", default: "50" },
    jobs: { type: "string", default: "100000" },
    /** The standby may lag behind, so acknowledged jobs may be lost. They are counted, and do not fail the run. */
    asynchronous: { type: "boolean", default: false },
  },
});

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new RangeError(`--${name}: "${text}" is not a whole number above 0`);
  return value;
}

/** Milliseconds after the promotion within which jobs are acknowledged and run again (SEMANTICS 9). */
const LIMITS: Readonly<Record<Loss, number>> = { crash: 2_000, switchover: 2_000, vanish: 10_000 };

const startedAt = performance.now();
const report = await runFailover({
  promotions: wholeNumber("promotions", values.promotions),
  jobs: wholeNumber("jobs", values.jobs),
  synchronous: !values.asynchronous,
  onLine: (line) => console.log(line),
});

const slowest = (loss: Loss, of: (promotion: Promotion) => number) =>
  Math.max(0, ...report.promotions.filter((promotion) => promotion.loss === loss).map(of));
for (const loss of ["crash", "switchover", "vanish"] as const) {
  const count = report.promotions.filter((promotion) => promotion.loss === loss).length;
  console.log(
    `${loss}: ${count} promotions, acknowledged again within ${slowest(loss, (of) => of.acknowledged).toFixed(0)} ms, ran within ${slowest(loss, (of) => of.ran).toFixed(0)} ms`,
  );
}
const { acknowledged, lost, unfinished, repeated, doubleVerdicts, missedEvents } = report;
console.log(
  `${report.promotions.length} promotions, ${acknowledged} jobs acknowledged, ${lost} lost, ${unfinished} unfinished, ${doubleVerdicts} double verdicts, ${missedEvents} events missed by the follower, ${repeated} jobs ran more than once, ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
);
const late = report.promotions.filter(({ loss, ran }) => ran > LIMITS[loss]).length;
if (late > 0) console.log(`${late} promotions took longer than promised`);
const isLossAllowed = values.asynchronous;
const isGood = (lost === 0 || isLossAllowed) && unfinished === 0 && doubleVerdicts === 0;
process.exitCode = isGood && missedEvents === 0 && late === 0 ? 0 : 1;
