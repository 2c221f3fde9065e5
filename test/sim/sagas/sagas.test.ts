import { describe, expect, it } from "vitest";
import { SAGA_REGRESSION_SEEDS } from "../regression-seeds.ts";
import { batchStarts, FAULTS, rulesBroken, runTraced, runTwice } from "../world.ts";
import { SAGA_MUTANTS } from "./saga-mutants.ts";
import { simulateSagas } from "./simulate-sagas.ts";

/** The fixed set of seeds; `CURFEW_SAGA_SEEDS` goes on from there. */
const SEEDS = Number(process.env.CURFEW_SAGA_SEEDS ?? 60);
const PER_BATCH = 20;
const MOST_SEEDS = 60;

describe("sagas under virtual time and faults", () => {
  it.each(batchStarts(SEEDS, PER_BATCH))(
    `all rules hold from seed %i on for ${PER_BATCH} seeds`,
    async (from) => {
      for (let seed = from; seed < from + PER_BATCH; seed++) {
        const { violations } = await simulateSagas({ seed });
        expect(violations, `seed ${seed}`).toEqual([]);
      }
    },
  );

  it.each(SAGA_REGRESSION_SEEDS)("all rules hold with seed %i: %s", async (seed) => {
    const { violations } = await simulateSagas({ seed });
    expect(violations).toEqual([]);
  });

  it.each([
    [95_000_330, "an undo fails its tries after a timeout that failed all of its own and was taken back"],
    [95_000_130, "an undo that newer ones put off fails its tries after theirs"],
  ])("the checker waits with seed %i: %s", async (seed) => {
    const { violations } = await simulateSagas({ seed });
    expect(violations).toEqual([]);
  });

  it.each([3, 17])("seed %i gives the same run twice", async (seed) => {
    const [first, second] = await runTwice(simulateSagas, seed);
    expect(first.steps).toBeGreaterThan(10);
    expect(second.trace.hash()).toBe(first.trace.hash());
    expect(second.events).toBe(first.events);
  });

  it("the traces of 30 seeds have every kind of fault, retries and handled messages", async () => {
    const { reports, text } = await runTraced(simulateSagas, 30);
    for (const word of [...FAULTS, "try 2", "try 10", "handled", "handled -"]) expect(text).toContain(word);
    expect(reports.reduce((sum, { steps }) => sum + steps, 0)).toBeGreaterThan(1_000);
    expect(reports.reduce((sum, { timeouts }) => sum + timeouts, 0)).toBeGreaterThan(300);
  });
});

describe("the checker of sagas can fail", () => {
  it.each(SAGA_MUTANTS)("it catches $name", async ({ mutate, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulateSagas({ seed, mutate }));
    expect(rules).toMatch(caughtBy);
  });
});
