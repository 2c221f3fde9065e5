import { describe, expect, it } from "vitest";
import { MUTANTS } from "./mutants.ts";
import { simulate } from "./simulate.ts";

const MOST_SEEDS = 100;

describe("the checker can fail", () => {
  it.each(MUTANTS)("it catches $name", async ({ mutation, caughtBy }) => {
    const rules: string[] = [];
    for (let seed = 1; seed <= MOST_SEEDS && !rules.some((rule) => caughtBy.test(rule)); seed++) {
      const { violations } = await simulate({ seed, mutation });
      rules.push(...violations.map(({ rule }) => rule));
    }
    expect(rules.join("\n")).toMatch(caughtBy);
  });
});
