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

interface SimWorld {
  /** How many of 100 seeds of `--world all` are of this world: more where more was found, fewer where a seed takes long. */
  readonly share: number;
  readonly simulate: (options: Options) => Promise<Outcome>;
}

type Reported = Omit<Outcome, "lines" | "units"> & { readonly trace: { readonly lines: readonly string[] } };

/** A simulator, and how many units of its work a run of it had. */
function world<Report extends Reported>(
  share: number,
  run: (options: Options) => Promise<Report>,
  unitsOf: (report: Report) => number,
): SimWorld {
  return {
    share,
    simulate: async (options) => {
      const report = await run(options);
      const { violations, events, trace } = report;
      return { violations, events, lines: trace.lines, units: unitsOf(report) };
    },
  };
}

const WORLDS: { readonly [name: string]: SimWorld } = {
  jobs: world(18, simulate, ({ jobs }) => jobs),
  /** Some processes are 50 to 500 ms away from the store. */
  distant: world(
    20,
    (options) => simulate({ ...options, isDistant: true }),
    ({ jobs }) => jobs,
  ),
  /** The same, and each process may have two commits under way (ADR 39). */
  commits: world(
    14,
    (options) => simulate({ ...options, isDistant: true, hasTwoCommits: true }),
    ({ jobs }) => jobs,
  ),
  /** Most queues are fair. */
  fair: world(
    5,
    (options) => simulate({ ...options, isFair: true }),
    ({ jobs }) => jobs,
  ),
  /** The same, and fair queues take rounds. */
  "fair-rounds": world(
    2,
    (options) => simulate({ ...options, isBusy: true }),
    ({ jobs }) => jobs,
  ),
  "fair-homes": world(
    3,
    (options) => simulate({ ...options, isFair: true, homes: 4 }),
    ({ jobs }) => jobs,
  ),
  /** The store has four homes, which are away at times and may forget their last second. */
  homes: world(
    12,
    (options) => simulate({ ...options, homes: 4 }),
    ({ jobs }) => jobs,
  ),
  outbox: world(4, simulateOutbox, ({ done }) => done),
  workflows: world(7, simulateWorkflows, ({ workflows }) => workflows),
  sagas: world(5, simulateSagas, ({ steps }) => steps),
  timeouts: world(8, simulateTimeouts, ({ handled }) => handled),
  crons: world(2, simulateCrons, ({ fired, unique }) => fired + unique),
};

export const WORLD_NAMES: readonly string[] = Object.keys(WORLDS);

export function worldOf(name: string): SimWorld {
  const found = Object.hasOwn(WORLDS, name) ? WORLDS[name] : undefined;
  if (found) return found;
  throw new RangeError(`--world: "${name}" is none; use one of ${WORLD_NAMES.join(", ")}, all`);
}

/** How a command names this world. */
export function optionOf(name: string): string {
  return name === "jobs" ? "" : `--world ${name} `;
}

export function failureText(name: string, seed: number, violations: readonly Violation[]): string {
  const rules = violations.slice(0, 5).map(({ rule, says }) => `seed ${seed} broke "${rule}"\n    ${says}`);
  return `${rules.join("\n")}\n    replay it: npm run sim -- ${optionOf(name)}--seed ${seed} --trace`;
}
