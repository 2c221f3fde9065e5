import { describe, expect, it } from "vitest";
import { WORKFLOW_REGRESSION_SEEDS } from "../regression-seeds.ts";
import { rulesBroken } from "../world.ts";
import { simulateWorkflows } from "./simulate-workflows.ts";
import { WORKFLOW_MUTANTS } from "./workflow-mutants.ts";

/** The fixed set of seeds; `CURFEW_WORKFLOW_SEEDS` goes on from there. */
const SEEDS = Number(process.env.CURFEW_WORKFLOW_SEEDS ?? 120);
const PER_BATCH = 20;
const MOST_SEEDS = 60;

describe("workflows under virtual time and faults", () => {
  it.each(Array.from({ length: Math.ceil(SEEDS / PER_BATCH) }, (_, batch) => 1 + batch * PER_BATCH))(
    `all rules hold from seed %i on for ${PER_BATCH} seeds`,
    { timeout: 60_000 },
    async (from) => {
      for (let seed = from; seed < from + PER_BATCH; seed++) {
        const { violations } = await simulateWorkflows({ seed });
        expect(violations, `seed ${seed}`).toEqual([]);
      }
    },
  );

  it.each(WORKFLOW_REGRESSION_SEEDS)("all rules hold with seed %i: %s", async (seed) => {
    expect((await simulateWorkflows({ seed })).violations).toEqual([]);
  });

  it.each([3, 17])("seed %i gives the same run twice", async (seed) => {
    const first = await simulateWorkflows({ seed, isTraced: true });
    const second = await simulateWorkflows({ seed, isTraced: true });
    expect(first.entries).toBeGreaterThan(10);
    expect(second.trace.hash()).toBe(first.trace.hash());
    expect(second.events).toBe(first.events);
  });

  it("worlds are not all alike: every end of a workflow, crashes, lost replies and retries are met with", async () => {
    let text = "";
    const ends: Record<string, number> = {};
    for (let seed = 1; seed <= 30; seed++) {
      const report = await simulateWorkflows({ seed, isTraced: true });
      text += report.trace.lines.join("\n");
      for (const [name, count] of Object.entries(report.ends)) ends[name] = (ends[name] ?? 0) + count;
    }
    for (const word of [
      "crashes",
      "stands still",
      "dropped",
      "unanswered",
      "slow by",
      "time 3",
      '"order" is full',
    ])
      expect(text).toContain(word);
    expect(ends.completed).toBeGreaterThan(100);
    expect(ends.failed).toBeGreaterThan(50);
    expect(ends.cancelled).toBeGreaterThan(5);
  });
});

describe("the checker of workflows can fail", () => {
  it.each(WORKFLOW_MUTANTS)("it catches $name", { timeout: 60_000 }, async ({ mutate, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulateWorkflows({ seed, mutate }));
    expect(rules).toMatch(caughtBy);
  });
});
