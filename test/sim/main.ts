/**
 * `npm run sim -- --seeds 100000 [--from 1]` runs many worlds; `npm run sim -- --seed 42 --trace` replays one and
 * prints its timeline. `--world sagas` runs another simulator, and `--report <file>` keeps the figures.
 * `npm run sim -- --world all --minutes 20 --from 1200000000 --report-folder <folder>` runs all worlds, one after the other,
 * ends within these minutes, and keeps one file per world.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
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
  /** The same, and each process may have two commits under way (ADR 39). */
  commits: world(
    (options) => simulate({ ...options, isDistant: true, hasTwoCommits: true }),
    ({ jobs }) => jobs,
  ),
  /** Most queues are fair. */
  fair: world(
    (options) => simulate({ ...options, isFair: true }),
    ({ jobs }) => jobs,
  ),
  /** The same, and fair queues take rounds. */
  "fair-rounds": world(
    (options) => simulate({ ...options, isBusy: true }),
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
    /** One of them, or `all`: one after the other, each for its share of the minutes. */
    world: { type: "string", default: "jobs" },
    /** Of each world. Default: 1,000, and with `--minutes` as many as there is time for. */
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    /** Stops earlier: no seed begins for which the time may be too short. */
    minutes: { type: "string" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    /** Short for `--world distant`. */
    distant: { type: "boolean", default: false },
    /** Goes on after a failure, to see how many seeds fail. `--world all` always does. */
    all: { type: "boolean", default: false },
    report: { type: "string" },
    /** Keeps the figures in a file for each world. */
    "report-folder": { type: "string" },
  },
});

interface Run {
  readonly name: string;
  readonly from: number;
  readonly count: number;
  /** When it has to be over, in `performance.now()`. */
  readonly endsAt: number;
  readonly goesOn: boolean;
  readonly report: string | undefined;
}

const SHOWN_EVERY = 5_000;
const DEFAULT_SEEDS = 1_000;

/** Seeds are numbers of 32 bits. */
const MOST_SEEDS = 2 ** 32;

function optionOf(name: string): string {
  return name === "jobs" ? "" : `--world ${name} `;
}

function failureText(name: string, seed: number, violations: readonly Violation[]): string {
  const rules = violations.slice(0, 5).map(({ rule, says }) => `seed ${seed} broke "${rule}"\n    ${says}`);
  return `${rules.join("\n")}\n    replay it: npm run sim -- ${optionOf(name)}--seed ${seed} --trace`;
}

function simulatorOf(name: string): (options: Options) => Promise<Outcome> {
  const run = Object.hasOwn(WORLDS, name) ? WORLDS[name] : undefined;
  if (run) return run;
  throw new RangeError(`--world: "${name}" is none; use one of ${Object.keys(WORLDS).join(", ")}, all`);
}

async function replay(name: string, seed: number, isTraced: boolean): Promise<boolean> {
  const { violations, lines, units, events } = await simulatorOf(name)({ seed, isTraced });
  for (const line of lines) console.log(line);
  if (violations.length > 0) console.error(failureText(name, seed, violations));
  const verdict = violations.length === 0 ? "all rules hold" : "FAILED";
  console.log(`${name}, seed ${seed}: ${units} units of work, ${events} events: ${verdict}`);
  return violations.length === 0;
}

/** Runs seeds of one world. Returns what failed, with the commands that replay it. */
async function runMany({ name, from, count, endsAt, goesOn, report }: Run): Promise<string[]> {
  const simulator = simulatorOf(name);
  const startedAt = performance.now();
  const totals = { seeds: 0, units: 0, events: 0 };
  const findings: string[] = [];
  let shownAt = startedAt;
  let longest = 0;
  const show = () => {
    const rate = (totals.seeds / (performance.now() - startedAt)) * 1_000;
    console.log(
      `${name}: ${totals.seeds} seeds, ${rate.toFixed(1)}/s, ${totals.units} units of work, ${totals.events} events, ${findings.length} failed`,
    );
  };
  for (let seed = from; seed < from + count && performance.now() + longest < endsAt; seed++) {
    const begunAt = performance.now();
    const { violations, units, events } = await simulator({ seed });
    longest = Math.max(longest, performance.now() - begunAt);
    totals.seeds += 1;
    totals.units += units;
    totals.events += events;
    if (violations.length > 0) {
      const text = failureText(name, seed, violations);
      console.error(text);
      findings.push(text);
      if (!goesOn) break;
    }
    if (performance.now() - shownAt > SHOWN_EVERY) {
      shownAt = performance.now();
      show();
    }
  }
  show();
  const command = `npm run sim -- ${optionOf(name)}--from ${from} --seeds ${totals.seeds}`;
  addRun(report, "simulator", { command, on: name, startedAt, counts: totals, findings });
  return findings;
}

/** Runs the worlds one after the other. What one leaves of its share, the next ones have. */
async function runWorlds(names: readonly string[], goesOn: boolean): Promise<boolean> {
  const { minutes, seeds, report, "report-folder": folder } = values;
  const from = wholeNumber("from", values.from);
  const endsAt =
    minutes === undefined
      ? Number.POSITIVE_INFINITY
      : performance.now() + wholeNumber("minutes", minutes, 1) * 60_000;
  const defaultCount = minutes === undefined ? DEFAULT_SEEDS : MOST_SEEDS - from;
  const count = seeds === undefined ? defaultCount : wholeNumber("seeds", seeds);
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  const failures: string[] = [];
  for (const [index, name] of names.entries()) {
    const share = (endsAt - performance.now()) / (names.length - index);
    const file = folder === undefined ? report : join(folder, `simulator-${name}-${from}.json`);
    const run = { name, from, count, endsAt: performance.now() + share, goesOn, report: file };
    failures.push(...(await runMany(run)));
  }
  if (names.length > 1) console.log(`${failures.length} seeds failed${["", ...failures].join("\n")}`);
  return failures.length === 0;
}

const chosen = values.distant ? "distant" : values.world;
const areAll = chosen === "all";
if (areAll && values.seed !== undefined)
  throw new RangeError("--seed: name the world of the seed with --world");
if (!areAll) simulatorOf(chosen);
const hasPassed =
  values.seed === undefined
    ? await runWorlds(areAll ? Object.keys(WORLDS) : [chosen], areAll || values.all)
    : await replay(chosen, wholeNumber("seed", values.seed), values.trace);
if (!hasPassed) process.exitCode = 1;
