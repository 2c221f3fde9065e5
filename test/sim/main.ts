/**
 * `npm run sim -- --seeds 100000 [--from 1]` runs many worlds; `npm run sim -- --seed 42 --trace` replays one and
 * prints its timeline. `--world sagas` runs another simulator, and `--report <file>` keeps the figures.
 * `npm run sim -- --world all --seeds 200000 --from 1200000000 --report-folder <folder>` runs these seeds of all worlds, each
 * with its share, on all cores, and keeps one file per world. `--minutes 20` and Ctrl+C end it earlier, with what it has.
 */
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import { runSeeds } from "./run-seeds.ts";
import type { SeedTotals } from "./seed-process.ts";
import { failureText, optionOf, WORLD_NAMES, worldOf } from "./worlds.ts";

const { values } = parseArgs({
  options: {
    /** One of them, or `all`: each has its share. */
    world: { type: "string", default: "jobs" },
    /** Of all worlds together. Default: 1,000, and with `--minutes` as many as there is time for. */
    seeds: { type: "string" },
    /** The first seed of each world. */
    from: { type: "string", default: "1" },
    /** Stops earlier: no seed begins for which the time may be too short. */
    minutes: { type: "string" },
    /** Default: one for each core. */
    processes: { type: "string" },
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

const SHOWN_EVERY = 5_000;
const DEFAULT_SEEDS = 1_000;

/** Seeds are numbers of 32 bits. */
const MOST_SEEDS = 2 ** 32;

async function replay(name: string, seed: number, isTraced: boolean): Promise<boolean> {
  const { violations, lines, units, events } = await worldOf(name).simulate({ seed, isTraced });
  for (const line of lines) console.log(line);
  if (violations.length > 0) console.error(failureText(name, seed, violations));
  const verdict = violations.length === 0 ? "all rules hold" : "FAILED";
  console.log(`${name}, seed ${seed}: ${units} units of work, ${events} events: ${verdict}`);
  return violations.length === 0;
}

/** Shows every few seconds how far the run is, and each finding at once: a long run may be ended before its report. */
function progress(): (totals: ReadonlyMap<string, SeedTotals>) => void {
  const startedAt = performance.now();
  let shownAt = startedAt;
  const shown = new Set<string>();
  return (totals) => {
    for (const { findings } of totals.values())
      for (const finding of findings) {
        if (!shown.has(finding)) console.error(finding);
        shown.add(finding);
      }
    const now = performance.now();
    if (now - shownAt < SHOWN_EVERY) return;
    shownAt = now;
    const all = [...totals.values()];
    const seeds = all.reduce((sum, one) => sum + one.seeds, 0);
    const failed = all.reduce((sum, { findings }) => sum + findings.length, 0);
    const rate = (seeds / (now - startedAt)) * 1_000;
    console.log(`${seeds} seeds, ${rate.toFixed(1)}/s, ${failed} failed`);
  };
}

/** A long run that is ended early keeps what it has. A second signal ends it at once. */
function signalled(): AbortSignal {
  const ending = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.once(name, () => {
      console.log(`${name}: ending after the seeds that are under way`);
      ending.abort();
    });
  return ending.signal;
}

/** Keeps what the seeds of a world came to. Its time is that of all processes. */
function keep(name: string, from: number, totals: SeedTotals): void {
  const { seeds, units, events, milliseconds, findings } = totals;
  console.log(
    `${name}: ${seeds} seeds, ${(milliseconds / seeds).toFixed(1)} ms each, ${units} units of work, ${events} events, ${findings.length} failed`,
  );
  const { report, "report-folder": folder } = values;
  const command = `npm run sim -- ${optionOf(name)}--from ${from} --seeds ${seeds}`;
  addRun(folder === undefined ? report : join(folder, `simulator-${name}-${from}.json`), "simulator", {
    command,
    on: name,
    startedAt: performance.now() - milliseconds,
    counts: { seeds, units, events },
    findings,
  });
}

async function runMany(names: readonly string[], goesOn: boolean): Promise<boolean> {
  const { minutes, seeds, "report-folder": folder } = values;
  const from = wholeNumber("from", values.from);
  const defaultCount = minutes === undefined ? DEFAULT_SEEDS : MOST_SEEDS - from;
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  const totals = await runSeeds({
    names,
    from,
    goesOn,
    count: seeds === undefined ? defaultCount : wholeNumber("seeds", seeds),
    processes: values.processes ? wholeNumber("processes", values.processes, 1) : availableParallelism(),
    endsAt:
      minutes === undefined
        ? Number.POSITIVE_INFINITY
        : performance.now() + wholeNumber("minutes", minutes, 1) * 60_000,
    onTotals: progress(),
    signal: signalled(),
  });
  for (const [name, ofWorld] of totals) if (ofWorld.seeds > 0) keep(name, from, ofWorld);
  const failures = [...totals.values()].flatMap(({ findings }) => findings);
  const sum = [...totals.values()].reduce((all, one) => all + one.seeds, 0);
  console.log(`${failures.length} of ${sum} seeds failed${["", ...failures].join("\n")}`);
  return failures.length === 0;
}

const chosen = values.distant ? "distant" : values.world;
const areAll = chosen === "all";
if (areAll && values.seed !== undefined)
  throw new RangeError("--seed: name the world of the seed with --world");
if (!areAll) worldOf(chosen);
const hasPassed =
  values.seed === undefined
    ? await runMany(areAll ? WORLD_NAMES : [chosen], areAll || values.all)
    : await replay(chosen, wholeNumber("seed", values.seed), values.trace);
if (!hasPassed) process.exitCode = 1;
