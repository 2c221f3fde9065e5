import { describe, expect, it } from "vitest";
import type { Store, Unit } from "../../../src/ports/store.ts";
import type { Dice } from "../dice.ts";
import { loadingAsCompleted, withUnits } from "../mutants.ts";
import { batchStarts, rulesBroken, runTwice } from "../world.ts";
import { simulateCrons } from "./simulate-crons.ts";

const BATCHES = 3;
const SEEDS_PER_BATCH = 40;
const MOST_SEEDS = 60;

describe("crons and unique jobs under virtual time and faults", () => {
  it.each(batchStarts(BATCHES * SEEDS_PER_BATCH, SEEDS_PER_BATCH))(
    `all their rules hold from seed %i on for ${SEEDS_PER_BATCH} seeds`,
    async (from) => {
      const seen = { fired: 0, unique: 0 };
      for (let seed = from; seed < from + SEEDS_PER_BATCH; seed++) {
        const report = await simulateCrons({ seed });
        expect(report.violations, `seed ${seed}`).toEqual([]);
        seen.fired += report.fired;
        seen.unique += report.unique;
      }
      expect(seen.fired).toBeGreaterThan(50 * SEEDS_PER_BATCH);
      expect(seen.unique).toBeGreaterThan(10 * SEEDS_PER_BATCH);
    },
  );

  it("the same seed gives the same run twice", async () => {
    const [first, second] = await runTwice(simulateCrons, 7);
    expect(first.trace.lines.length).toBeGreaterThan(50);
    expect(second.trace.hash()).toBe(first.trace.hash());
  });
});

const isCronUnit = ({ effects = [] }: Unit) =>
  effects.some((effect) => "put" in effect && effect.put[0] === "cron");

/** Defects planted on purpose: each must be caught by the rule that is meant for it. */
const MUTANTS: Record<string, { caughtBy: RegExp; mutate: (store: Store, dice: Dice) => Store }> = {
  "does not look at the version of a cron": {
    caughtBy: /one firing per instant|overlap/,
    mutate: (store) => withUnits(store, (unit) => (isCronUnit(unit) ? { ...unit, when: [] } : unit)),
  },
  "moves a cron on and forgets its job now and then": {
    caughtBy: /no instant is lost/,
    mutate: (store, dice) =>
      withUnits(store, (unit) =>
        isCronUnit(unit) && !unit.job && dice.chance(0.2)
          ? { ...unit, effects: unit.effects?.filter((effect) => !("enqueue" in effect)) ?? [] }
          : unit,
      ),
  },
  "has a clock that runs ahead": {
    caughtBy: /early/,
    mutate: (store) => ({ ...store, clock: async () => (await store.clock()) + 1_500 }),
  },
  "says of running jobs that they have ended": {
    caughtBy: /overlap/,
    mutate: (store) => loadingAsCompleted(store, "active"),
  },
  "does not look at the version of a unique key": {
    caughtBy: /one job per unique key/,
    mutate: (store) =>
      withUnits(store, (unit) =>
        unit.when?.some((guard) => "record" in guard && guard.record[0] === "unique")
          ? { ...unit, when: [] }
          : unit,
      ),
  },
  "forgets unique keys": {
    caughtBy: /one job per unique key/,
    mutate: (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        enqueue: (jobs, options) =>
          store.jobs.enqueue(
            jobs.map(({ uniqueKey: _key, ...job }) => job),
            options,
          ),
      },
    }),
  },
};

describe("defects planted on purpose", () => {
  it.each(Object.entries(MUTANTS))("a store that %s is caught", async (_name, { caughtBy, mutate }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulateCrons({ seed, mutate }));
    expect(rules).toMatch(caughtBy);
  });
});
