import { describe, expect, it } from "vitest";
import { WORKFLOW_REGRESSION_SEEDS } from "../regression-seeds.ts";
import { batchStarts, FAULTS, rulesBroken, runTraced, runTwice } from "../world.ts";
import { simulateWorkflows } from "./simulate-workflows.ts";
import { WORKFLOW_MUTANTS } from "./workflow-mutants.ts";

/** The fixed set of seeds; `CURFEW_WORKFLOW_SEEDS` goes on from there. */
const SEEDS = Number(process.env.CURFEW_WORKFLOW_SEEDS ?? 120);
const PER_BATCH = 20;
const MOST_SEEDS = 200;

describe("workflows under virtual time and faults", () => {
  it.each(batchStarts(SEEDS, PER_BATCH))(
    `all rules hold from seed %i on for ${PER_BATCH} seeds`,
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
    const [first, second] = await runTwice(simulateWorkflows, seed);
    expect(first.entries).toBeGreaterThan(10);
    expect(second.trace.hash()).toBe(first.trace.hash());
    expect(second.events).toBe(first.events);
  });

  it("the traces of 30 seeds have every kind of fault, retries and every end of a workflow", async () => {
    const { reports, text } = await runTraced(simulateWorkflows, 30);
    const count = (end: string) => reports.reduce((sum, { ends }) => sum + (ends[end] ?? 0), 0);
    for (const word of [...FAULTS, "time 3", '"order" is full']) expect(text).toContain(word);
    expect(count("completed")).toBeGreaterThan(100);
    expect(count("failed")).toBeGreaterThan(50);
    expect(count("cancelled")).toBeGreaterThan(5);
  });
});

describe("the checker of workflows can fail", () => {
  it.each(WORKFLOW_MUTANTS)("it catches $name", async ({ mutate, caughtBy }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulateWorkflows({ seed, mutate }));
    expect(rules).toMatch(caughtBy);
  });
});
