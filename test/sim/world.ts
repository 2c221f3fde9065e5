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

/** Runs until nothing is left, the checker has seen a violation, or the time is over. Returns what is left. */
export async function runUntilSettled(
  { scheduler }: World,
  isOver: () => boolean,
  within: number,
  findLeft: () => Promise<string[]>,
): Promise<string[]> {
  const limit = scheduler.now + within;
  let left = ["the beginning"];
  while (left.length > 0 && scheduler.now < limit && !isOver()) {
    await scheduler.runUntil(isOver, scheduler.now + SETTLE_STEP);
    left = await findLeft();
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
