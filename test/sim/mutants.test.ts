import { describe, expect, it } from "vitest";
import { FAIR_MUTANTS, MUTANTS, ROUND_MUTANTS } from "./mutants.ts";
import { simulate } from "./simulate.ts";
import { rulesBroken } from "./world.ts";

const MOST_SEEDS = 100;

describe("the checker can fail", () => {
  it.each(MUTANTS)("it catches $name", async ({ mutation, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulate({ seed, mutation }));
    expect(rules).toMatch(caughtBy);
  });

  it.each(FAIR_MUTANTS)("it catches $name", async ({ mutation, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) =>
      simulate({ seed, mutation, isFair: true }),
    );
    expect(rules).toMatch(caughtBy);
  });

  it.each(ROUND_MUTANTS)("it catches $name", async ({ mutation, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) =>
      simulate({ seed, mutation, isBusy: true }),
    );
    expect(rules).toMatch(caughtBy);
  });
});
