import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/ports/store.ts";
import type { TimeoutStore } from "../../../src/ports/timeouts.ts";
import type { Dice } from "../dice.ts";
import { batchStarts, rulesBroken, runTwice } from "../world.ts";
import { simulateTimeouts } from "./simulate-timeouts.ts";

const BATCHES = 4;
const SEEDS_PER_BATCH = 50;
const MOST_SEEDS = 60;

describe("dispatchers under virtual time and faults", () => {
  it.each(batchStarts(BATCHES * SEEDS_PER_BATCH, SEEDS_PER_BATCH))(
    `all rules of timeouts hold from seed %i on for ${SEEDS_PER_BATCH} seeds`,
    async (from) => {
      let handled = 0;
      for (let seed = from; seed < from + SEEDS_PER_BATCH; seed++) {
        const report = await simulateTimeouts({ seed });
        expect(report.violations, `seed ${seed}`).toEqual([]);
        handled += report.handled;
      }
      expect(handled).toBeGreaterThan(20 * SEEDS_PER_BATCH);
    },
  );

  it("the same seed gives the same run twice", async () => {
    const [first, second] = await runTwice(simulateTimeouts, 7);
    expect(first.trace.lines.length).toBeGreaterThan(100);
    expect(second.trace.hash()).toBe(first.trace.hash());
  });
});

function withTimeouts(store: Store, change: (timeouts: TimeoutStore) => Partial<TimeoutStore>): Store {
  return { ...store, timeouts: { ...store.timeouts, ...change(store.timeouts) } };
}

/** Defects planted on purpose: each must be caught by the rule that is meant for it. */
const MUTANTS: Record<string, { caughtBy: RegExp; mutate: (store: Store, dice: Dice) => Store }> = {
  "claims early": {
    caughtBy: /early/,
    mutate: (store) =>
      withTimeouts(store, (timeouts) => ({
        claimDue: (request) => timeouts.claimDue({ ...request, now: request.now + 500 }),
      })),
  },
  "ignores leases": {
    caughtBy: /no two hold the same/,
    mutate: (store) =>
      withTimeouts(store, (timeouts) => ({
        async claimDue(request) {
          await timeouts.reap({ now: Number.MAX_SAFE_INTEGER });
          return timeouts.claimDue(request);
        },
      })),
  },
  "loses what it acknowledged": {
    caughtBy: /no timeout is lost/,
    mutate: (store, dice) =>
      withTimeouts(store, (timeouts) => ({
        insert: async (added, options) =>
          dice.chance(0.05) ? added.map(() => "created" as const) : timeouts.insert(added, options),
      })),
  },
  "only says that it cancelled": {
    caughtBy: /after a confirmed cancel/,
    mutate: (store) => withTimeouts(store, () => ({ cancel: async () => ({ pending: 1, leased: 0 }) })),
  },
  "only says that it removed": {
    caughtBy: /after it was removed/,
    mutate: (store) => withTimeouts(store, () => ({ remove: async (held) => held.map(() => "ok" as const) })),
  },
  "never finds a lease that is over": {
    caughtBy: /everything settles/,
    mutate: (store) =>
      withTimeouts(store, (timeouts) => ({
        reap: async () => 0,
        claimDue: async (request) => {
          const leased = new Set(
            (await timeouts.list({}, null, 1_000)).filter(({ owner }) => owner !== null).map(({ id }) => id),
          );
          return (await timeouts.claimDue(request)).filter(({ id }) => !leased.has(id));
        },
      })),
  },
};

describe("the checker of timeouts can fail", () => {
  it.each(Object.entries(MUTANTS))("it catches a store that %s", async (_name, { caughtBy, mutate }) => {
    const rules = await rulesBroken(MOST_SEEDS, caughtBy, (seed) => simulateTimeouts({ seed, mutate }));
    expect(rules).toMatch(caughtBy);
  });
});
