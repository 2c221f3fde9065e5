/**
 * `npm run sim -- --seeds 100000 [--from 1]` runs many worlds; `npm run sim -- --seed 42 --trace` replays one and
 * prints its timeline.
 */
import { parseArgs } from "node:util";
import { type SimReport, simulate } from "./simulate.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    /** Puts some processes 50 to 500 ms away from the store. */
    distant: { type: "boolean", default: false },
    /** Goes on after a failure, to see how many seeds fail. */
    all: { type: "boolean", default: false },
  },
});

const EVERY = 5_000;
const isDistant = values.distant;

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`--${name}: "${text}" is not a whole number`);
  return value;
}

function printFailure({ seed, violations }: SimReport): void {
  for (const { rule, says } of violations.slice(0, 5))
    console.error(`seed ${seed} broke "${rule}"\n    ${says}`);
  console.error(`    replay it: npm run sim -- --seed ${seed} --trace`);
}

async function replay(seed: number, isTraced: boolean): Promise<boolean> {
  const report = await simulate({ seed, isDistant, isTraced, onLine: (line) => console.log(line) });
  if (report.violations.length > 0) printFailure(report);
  console.log(
    `seed ${seed}: ${report.jobs} jobs, ${report.runs} attempts, ${report.events} events in ${(report.duration / 1_000).toFixed(1)} s of virtual time: ${report.violations.length === 0 ? "all rules hold" : "FAILED"}`,
  );
  return report.violations.length === 0;
}

async function runMany(from: number, count: number, isAll: boolean): Promise<boolean> {
  const startedAt = performance.now();
  const totals = { seeds: 0, jobs: 0, runs: 0, events: 0, duration: 0, failures: 0 };
  let shownAt = startedAt;
  const show = () => {
    const seconds = (performance.now() - startedAt) / 1_000;
    console.log(
      `${totals.seeds} of ${count} seeds, ${(totals.seeds / seconds).toFixed(1)}/s, ${totals.jobs} jobs, ${totals.runs} attempts, ${totals.events} events, ${(totals.duration / 3_600_000).toFixed(1)} virtual hours, ${totals.failures} failed`,
    );
  };
  for (let seed = from; seed < from + count; seed++) {
    const report = await simulate({ seed, isDistant });
    totals.seeds += 1;
    for (const name of ["jobs", "runs", "events", "duration"] as const) totals[name] += report[name];
    if (report.violations.length > 0) {
      totals.failures += 1;
      printFailure(report);
      if (!isAll) break;
    }
    if (performance.now() - shownAt > EVERY) {
      shownAt = performance.now();
      show();
    }
  }
  show();
  return totals.failures === 0;
}

const hasPassed =
  values.seed === undefined
    ? await runMany(wholeNumber("from", values.from), wholeNumber("seeds", values.seeds), values.all)
    : await replay(wholeNumber("seed", values.seed), values.trace);
if (!hasPassed) process.exitCode = 1;
