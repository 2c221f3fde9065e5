import { describe, expect, it } from "vitest";
import type { JobRow } from "../job/job.ts";
import type { FairWeights } from "./fair-options.ts";
import { RoundPace } from "./round-pace.ts";

const EQUAL: FairWeights = { weights: new Map(), defaultWeight: 1 };

/** Claims of `size` jobs every `every` milliseconds, from keys in turn. Returns what each claim was told. */
function claims(
  pace: RoundPace,
  keys: number,
  { size, every, count }: Record<string, number>,
  weights: FairWeights = EQUAL,
): number[] {
  const told: number[] = [];
  let [now, taken, key] = [1_000, 0, 0];
  for (let nth = 0; nth < (count as number); nth++) {
    now += every as number;
    const times = pace.times(now);
    told.push(times);
    const rows = Array.from({ length: size as number }, () => {
      if (taken >= times) [key, taken] = [(key + 1) % keys, 0];
      taken += 1;
      return { fairKey: `key-${String(key).padStart(5, "0")}`, rank: 0 } as JobRow;
    });
    pace.note(rows, now, weights);
  }
  return told;
}

describe("the pace of rounds", () => {
  it("keys give several jobs in a turn while a round of all of them takes no more than 100 ms", () => {
    // 20 jobs in a millisecond: 2,000 jobs in 100 ms, over 40 keys.
    expect(claims(new RoundPace(), 40, { size: 200, every: 10, count: 40 }).at(-1)).toBe(50);
    expect(claims(new RoundPace(), 2, { size: 200, every: 10, count: 40 }).at(-1)).toBe(64);
  });

  it("the weights of the keys count: a round is as long as all of them together", () => {
    const weights = { weights: new Map([["key-00001", 99]]), defaultWeight: 1 };
    expect(claims(new RoundPace(), 2, { size: 200, every: 10, count: 40 }, weights).at(-1)).toBe(20);
  });

  it("keys give one job in a turn if there are many of them, or jobs start slowly", () => {
    expect(new Set(claims(new RoundPace(), 2_000, { size: 200, every: 10, count: 80 }))).toEqual(
      new Set([1]),
    );
    expect(new Set(claims(new RoundPace(), 40, { size: 10, every: 20, count: 80 }))).toEqual(new Set([1]));
  });

  it("keys give one job in a turn until the first round is over", () => {
    const told = claims(new RoundPace(), 1_000, { size: 500, every: 5, count: 8 });
    expect(told.slice(0, 3)).toEqual([1, 1, 1]);
    expect(told.at(-1)).toBe(10);
  });

  it("what was measured is forgotten after a tenth of a second", () => {
    const pace = new RoundPace();
    claims(pace, 2, { size: 200, every: 10, count: 10 });
    expect(pace.times(1_150)).toBe(64);
    expect(pace.times(1_250)).toBe(1);
  });
});
