import { describe, expect, it } from "vitest";
import { rulesBroken } from "../world.ts";
import { SAGA_MUTANTS } from "./saga-mutants.ts";
import { simulateSagas } from "./simulate-sagas.ts";

/** The fixed set of seeds; `CURFEW_SAGA_SEEDS` goes on from there. */
const SEEDS = Number(process.env.CURFEW_SAGA_SEEDS ?? 60);
const PER_BATCH = 20;
const MOST_SEEDS = 60;

describe("sagas under virtual time and faults", () => {
  it.each(Array.from({ length: Math.ceil(SEEDS / PER_BATCH) }, (_, batch) => 1 + batch * PER_BATCH))(
    `all rules hold from seed %i on for ${PER_BATCH} seeds`,
    async (from) => {
      for (let seed = from; seed < from + PER_BATCH; seed++) {
        const { violations } = await simulateSagas({ seed });
        expect(violations, `seed ${seed}`).toEqual([]);
      }
    },
  );

  it.each([3, 17])("seed %i gives the same run twice", async (seed) => {
    const first = await simulateSagas({ seed, isTraced: true });
    const second = await simulateSagas({ seed, isTraced: true });
    expect(first.steps).toBeGreaterThan(10);
    expect(second.trace.hash()).toBe(first.trace.hash());
    expect(second.events).toBe(first.events);
  });

  it("worlds are not all alike: crashes, lost replies, tries, conflicts and revokes are met with", async () => {
    let text = "";
    const totals = { steps: 0, timeouts: 0 };
    for (let seed = 1; seed <= 30; seed++) {
      const report = await simulateSagas({ seed, isTraced: true });
      text += report.trace.lines.join("\n");
      totals.steps += report.steps;
      totals.timeouts += report.timeouts;
    }
    for (const word of [
      "crashes",
      "stands still",
      "dropped",
      "unanswered",
      "slow by",
      "try 2",
      "try 10",
      "handled",
    ])
      expect(text).toContain(word);
    expect(totals.steps).toBeGreaterThan(1_000);
    expect(totals.timeouts).toBeGreaterThan(300);
  });
});

describe("the checker of sagas can fail", () => {
  it.each(SAGA_MUTANTS)("it catches $name", async ({ mutate, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulateSagas({ seed, mutate }));
    expect(rules).toMatch(caughtBy);
  });
});
