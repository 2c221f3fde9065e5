import { describe, expect, it } from "vitest";
import { REGRESSION_SEEDS } from "./regression-seeds.ts";
import { simulate } from "./simulate.ts";

/** The fixed set of seeds that every change has to survive; `npm run sim -- --seeds 100000` goes on from there. */
const BATCHES = 10;
const SEEDS_PER_BATCH = 60;

describe("the whole engine under virtual time and faults", () => {
  it.each(Array.from({ length: BATCHES }, (_, batch) => 1 + batch * SEEDS_PER_BATCH))(
    `all rules hold from seed %i on for ${SEEDS_PER_BATCH} seeds`,
    async (from) => {
      const total = { ended: 0, counted: 0 };
      for (let seed = from; seed < from + SEEDS_PER_BATCH; seed++) {
        const { violations, figures } = await simulate({ seed });
        expect(violations, `npm run sim -- --seed ${seed} --trace`).toEqual([]);
        total.ended += figures.ended;
        total.counted += figures.counted;
      }
      // In these worlds processes are killed every few seconds; what the others counted is there.
      expect(total.counted / total.ended).toBeGreaterThan(0.6);
    },
  );

  it.each(REGRESSION_SEEDS)("all rules hold with seed %i: %s", async (seed) => {
    const { violations } = await simulate({ seed });
    expect(violations, `npm run sim -- --seed ${seed} --trace`).toEqual([]);
  });

  it.each([7, 42, 1_234])("seed %i gives the same run twice", async (seed) => {
    const first = await simulate({ seed, isTraced: true });
    const second = await simulate({ seed, isTraced: true });
    expect(first.trace.lines.length).toBeGreaterThan(100);
    expect(second.trace.hash()).toBe(first.trace.hash());
    expect(second.events).toBe(first.events);
  });

  it("worlds are not all alike: faults, retries, timeouts, stalls and late results are met with", async () => {
    const seen = new Set<string>();
    const words = [
      "crashes",
      "stands still",
      "wall clock jumps",
      "dropped",
      "unanswered",
      "slow by",
      "retryable",
      "timeout",
      "total_timeout",
      "enqueue_ttl_expired",
      "stalled",
      "cancelled",
      "strikes",
      "gone",
      "hears shutdown",
      "kills its process",
      "pending -> available",
      "rate_limited",
      "queue_full",
    ];
    for (let seed = 1; seed <= 60; seed++) {
      const { trace } = await simulate({ seed, isTraced: true });
      const text = trace.lines.join("\n");
      for (const word of words) if (text.includes(word)) seen.add(word);
    }
    expect([...seen].sort()).toEqual([...words].sort());
  });
});
