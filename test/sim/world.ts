import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import type { Violation } from "./checker.ts";
import { Dice, subSeed } from "./dice.ts";
import { EPOCH, Scheduler } from "./scheduler.ts";
import { Trace } from "./trace.ts";

export interface WorldOptions {
  readonly seed: number;
  /** A defect planted on purpose, to prove that the checker can see one. */
  readonly mutate?: (store: Store, dice: Dice) => Store;
  readonly isTraced?: boolean;
}

export interface WorldReport {
  readonly violations: readonly Violation[];
  readonly trace: Trace;
  readonly events: number;
}

/** What every simulated world is made of. */
export interface World {
  readonly seed: number;
  readonly dice: Dice;
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly memory: Store;
  /** Plants the defect of the options, if there is one. */
  mutated(store: Store): Store;
}

export function createWorld(name: string, { seed, mutate, isTraced = false }: WorldOptions): World {
  const scheduler = new Scheduler();
  return {
    seed,
    dice: new Dice(subSeed(seed, name)),
    scheduler,
    trace: new Trace({ isKept: isTraced, now: () => scheduler.now - EPOCH }),
    memory: createMemoryStore({ clock: () => Math.floor(scheduler.now) }),
    mutated: (store) => mutate?.(store, new Dice(subSeed(seed, "mutation"))) ?? store,
  };
}

const SETTLE_STEP = 5_000;
/** A world that settles something for ever ends after this many times the time it has for one thing. */
const MOST_WAITS = 40;

/**
 * Runs until nothing is left, the checker has seen a violation, or the time is over. Returns what is left. The time begins
 * anew whenever `countSettled` has grown: in a world where one thing waits for another, no fixed time is long enough.
 */
export async function runUntilSettled(
  { scheduler }: Pick<World, "scheduler">,
  isOver: () => boolean,
  within: number,
  findLeft: () => Promise<string[]>,
  countSettled: () => number = () => 0,
  step = SETTLE_STEP,
): Promise<string[]> {
  const end = scheduler.now + MOST_WAITS * within;
  let limit = scheduler.now + within;
  let left = ["the beginning"];
  let settled = countSettled();
  while (left.length > 0 && scheduler.now < limit && !isOver()) {
    await scheduler.runUntil(isOver, scheduler.now + step);
    left = await findLeft();
    const count = countSettled();
    if (count > settled) limit = Math.min(scheduler.now + within, end);
    settled = Math.max(settled, count);
  }
  return left;
}

/** The rules that a checker found broken, over as many seeds as it takes until the expected one is among them. */
export async function rulesBroken(
  mostSeeds: number,
  caughtBy: RegExp,
  simulate: (seed: number) => Promise<Pick<WorldReport, "violations">>,
): Promise<string> {
  const rules: string[] = [];
  for (let seed = 1; seed <= mostSeeds && !rules.some((rule) => caughtBy.test(rule)); seed++) {
    const { violations } = await simulate(seed);
    rules.push(...violations.map(({ rule }) => rule));
  }
  return rules.join("\n");
}

/** Words of a trace for each kind of fault. */
export const FAULTS = ["crashes", "stands still", "dropped", "unanswered", "slow by"];

/** The first seed of each batch of tests. */
export function batchStarts(seeds: number, perBatch: number): number[] {
  return Array.from({ length: Math.ceil(seeds / perBatch) }, (_, batch) => 1 + batch * perBatch);
}

/** Runs a seed twice with a trace. */
export async function runTwice<Report extends WorldReport>(
  simulate: (options: WorldOptions) => Promise<Report>,
  seed: number,
): Promise<[first: Report, second: Report]> {
  return [await simulate({ seed, isTraced: true }), await simulate({ seed, isTraced: true })];
}

/** Runs the first seeds with a trace. Returns the reports and the text of all traces. */
export async function runTraced<Report extends WorldReport>(
  simulate: (options: WorldOptions) => Promise<Report>,
  seeds: number,
): Promise<{ reports: Report[]; text: string }> {
  const reports: Report[] = [];
  for (let seed = 1; seed <= seeds; seed++) reports.push(await simulate({ seed, isTraced: true }));
  return { reports, text: reports.map(({ trace }) => trace.lines.join("\n")).join("\n") };
}
