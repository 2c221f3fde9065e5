/**
 * `npm run sim -- --seeds 100000 [--from 1]` runs many worlds; `npm run sim -- --seed 42 --trace` replays one and
 * prints its timeline. `--world sagas` runs another simulator, and `--report <file>` keeps the figures.
 */
import { parseArgs } from "node:util";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import type { Violation } from "./checker.ts";
import { simulateCrons } from "./crons/simulate-crons.ts";
import { simulateOutbox } from "./homes/simulate-outbox.ts";
import { simulateSagas } from "./sagas/simulate-sagas.ts";
import { simulate } from "./simulate.ts";
import { simulateTimeouts } from "./timeouts/simulate-timeouts.ts";
import { simulateWorkflows } from "./workflows/simulate-workflows.ts";

interface Options {
  readonly seed: number;
  readonly isTraced?: boolean;
}

/** What one seed came to: `units` are jobs, workflows, saga steps, timeouts or firings. */
interface Outcome {
  readonly violations: readonly Violation[];
  readonly lines: readonly string[];
  readonly units: number;
  readonly events: number;
}

type Reported = Omit<Outcome, "lines" | "units"> & { readonly trace: { readonly lines: readonly string[] } };

/** A simulator, and how many units of its work a run of it had. */
function world<Report extends Reported>(
  run: (options: Options) => Promise<Report>,
  unitsOf: (report: Report) => number,
): (options: Options) => Promise<Outcome> {
  return async (options) => {
    const report = await run(options);
    const { violations, events, trace } = report;
    return { violations, events, lines: trace.lines, units: unitsOf(report) };
  };
}

const WORLDS: { readonly [name: string]: (options: Options) => Promise<Outcome> } = {
  jobs: world(simulate, ({ jobs }) => jobs),
  /** Some processes are 50 to 500 ms away from the store. */
  distant: world(
    (options) => simulate({ ...options, isDistant: true }),
    ({ jobs }) => jobs,
  ),
  /** Most queues are fair. */
  fair: world(
    (options) => simulate({ ...options, isFair: true }),
    ({ jobs }) => jobs,
  ),
  "fair-homes": world(
    (options) => simulate({ ...options, isFair: true, homes: 4 }),
    ({ jobs }) => jobs,
  ),
  /** The store has four homes, which are away at times and may forget their last second. */
  homes: world(
    (options) => simulate({ ...options, homes: 4 }),
    ({ jobs }) => jobs,
  ),
  outbox: world(simulateOutbox, ({ done }) => done),
  workflows: world(simulateWorkflows, ({ workflows }) => workflows),
  sagas: world(simulateSagas, ({ steps }) => steps),
  timeouts: world(simulateTimeouts, ({ handled }) => handled),
  crons: world(simulateCrons, ({ fired, unique }) => fired + unique),
};

const { values } = parseArgs({
  options: {
    world: { type: "string", default: "jobs" },
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    /** Stops earlier. */
    minutes: { type: "string", default: "1000000" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    /** Short for `--world distant`. */
    distant: { type: "boolean", default: false },
    /** Goes on after a failure, to see how many seeds fail. */
    all: { type: "boolean", default: false },
    report: { type: "string" },
  },
});

const SHOWN_EVERY = 5_000;
const name = values.distant ? "distant" : values.world;
const run = Object.hasOwn(WORLDS, name) ? WORLDS[name] : undefined;
if (!run) throw new RangeError(`--world: "${name}" is none; use one of ${Object.keys(WORLDS).join(", ")}`);
const simulator = run;
const option = name === "jobs" ? "" : `--world ${name} `;

function failureText(seed: number, violations: readonly Violation[]): string {
  const rules = violations.slice(0, 5).map(({ rule, says }) => `seed ${seed} broke "${rule}"\n    ${says}`);
  return `${rules.join("\n")}\n    replay it: npm run sim -- ${option}--seed ${seed} --trace`;
}

async function replay(seed: number, isTraced: boolean): Promise<boolean> {
  const { violations, lines, units, events } = await simulator({ seed, isTraced });
  for (const line of lines) console.log(line);
  if (violations.length > 0) console.error(failureText(seed, violations));
  const verdict = violations.length === 0 ? "all rules hold" : "FAILED";
  console.log(`${name}, seed ${seed}: ${units} units of work, ${events} events: ${verdict}`);
  return violations.length === 0;
}

async function runMany(from: number, count: number, minutes: number): Promise<boolean> {
  const startedAt = performance.now();
  const totals = { seeds: 0, units: 0, events: 0 };
  const findings: string[] = [];
  let shownAt = startedAt;
  const show = () => {
    const rate = (totals.seeds / (performance.now() - startedAt)) * 1_000;
    console.log(
      `${name}: ${totals.seeds} of ${count} seeds, ${rate.toFixed(1)}/s, ${totals.units} units of work, ${totals.events} events, ${findings.length} failed`,
    );
  };
  const endsAt = startedAt + minutes * 60_000;
  for (let seed = from; seed < from + count && performance.now() < endsAt; seed++) {
    const { violations, units, events } = await simulator({ seed });
    totals.seeds += 1;
    totals.units += units;
    totals.events += events;
    if (violations.length > 0) {
      const text = failureText(seed, violations);
      console.error(text);
      findings.push(text);
      if (!values.all) break;
    }
    if (performance.now() - shownAt > SHOWN_EVERY) {
      shownAt = performance.now();
      show();
    }
  }
  show();
  const command = `npm run sim -- ${option}--from ${from} --seeds ${totals.seeds}`;
  addRun(values.report, "simulator", { command, on: name, startedAt, counts: totals, findings });
  return findings.length === 0;
}

const hasPassed =
  values.seed === undefined
    ? await runMany(
        wholeNumber("from", values.from),
        wholeNumber("seeds", values.seeds),
        wholeNumber("minutes", values.minutes, 1),
      )
    : await replay(wholeNumber("seed", values.seed), values.trace);
if (!hasPassed) process.exitCode = 1;
