import { describe, expect, it } from "vitest";
import {
  FAIR_HOME_REGRESSION_SEEDS,
  HOME_REGRESSION_SEEDS,
  OUTBOX_REGRESSION_SEEDS,
} from "../regression-seeds.ts";
import { simulate } from "../simulate.ts";
import { rulesBroken, runTwice } from "../world.ts";
import { JOB_MUTANTS, OUTBOX_MUTANTS } from "./home-mutants.ts";
import { simulateOutbox } from "./simulate-outbox.ts";

/** `npm run sim -- --world homes --seeds 5000` and `--world outbox` go on from here. */
const SEEDS = 12;
const MOST_SEEDS = 40;
const HOMES = 4;

describe("a store with four homes, which are away at times and may forget their last second", () => {
  it("keeps all rules of jobs", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { violations } = await simulate({ seed, homes: HOMES });
      expect(violations, `npm run sim -- --world homes --seed ${seed} --trace`).toEqual([]);
    }
  });

  it("keeps the turns of fair queues in each home", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { violations } = await simulate({ seed, homes: HOMES, isFair: true });
      expect(violations, `npm run sim -- --world fair-homes --seed ${seed} --trace`).toEqual([]);
    }
  });

  it("carries what sagas owe to other homes, once", async () => {
    let messages = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const report = await simulateOutbox({ seed });
      expect(report.violations, `npm run sim -- --world outbox --seed ${seed} --trace`).toEqual([]);
      messages += report.messages;
    }
    expect(messages).toBeGreaterThan(50);
  });

  it.each(HOME_REGRESSION_SEEDS)("keeps them with seed %i, which showed: %s", async (seed) => {
    expect((await simulate({ seed, homes: HOMES })).violations).toEqual([]);
  });

  it.each(FAIR_HOME_REGRESSION_SEEDS)("keeps turns with seed %i, which showed: %s", async (seed) => {
    expect((await simulate({ seed, homes: HOMES, isFair: true })).violations).toEqual([]);
  });

  it.each(OUTBOX_REGRESSION_SEEDS)("carries them with seed %i, which showed: %s", async (seed) => {
    expect((await simulateOutbox({ seed })).violations).toEqual([]);
  });

  it("gives the same run twice", async () => {
    const [first, second] = await runTwice(simulateOutbox, 5);
    expect(first.trace.lines.length).toBeGreaterThan(20);
    expect(second.trace.hash()).toBe(first.trace.hash());
  });

  it("meets with homes that are away and with homes that forget", async () => {
    const text: string[] = [];
    for (let seed = 1; seed <= 10; seed++) {
      const { trace } = await simulate({ seed, homes: HOMES, isTraced: true });
      text.push(...trace.lines);
    }
    const all = text.join("\n");
    for (const word of ["is away for", "comes back without its last second", "refused", "not heard", "again"])
      expect(all).toContain(word);
  });
});

describe("the rules of homes can fail", () => {
  it.each(JOB_MUTANTS)("they catch $name", async ({ mutation, caughtBy }) => {
    const run = (seed: number) => simulate({ seed, homes: HOMES, mutation: { homes: mutation } });
    expect(await rulesBroken(MOST_SEEDS, caughtBy, run)).toMatch(caughtBy);
  });

  it.each(OUTBOX_MUTANTS)("they catch $name", async ({ mutation, caughtBy }) => {
    const run = (seed: number) => simulateOutbox({ seed, mutation });
    expect(await rulesBroken(MOST_SEEDS, caughtBy, run)).toMatch(caughtBy);
  });
});
