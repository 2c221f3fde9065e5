import { describe, expect, it } from "vitest";
import type { JobRow } from "../job/job.ts";
import type { FairWeights } from "./fair-options.ts";
import { Round } from "./round.ts";

const EQUAL: FairWeights = { weights: new Map(), defaultWeight: 1 };
const keysUpTo = (count: number) =>
  Array.from({ length: count }, (_, nth) => `key-${String(nth).padStart(5, "0")}`);
const rowsOf = (...keys: string[]) => keys.map((fairKey) => ({ fairKey }) as JobRow);

function begun(keys: readonly string[], most: number, weights = EQUAL, isPart = false): Round {
  const round = new Round(0);
  round.begin({ keys, hasKeyless: false }, weights, most, isPart);
  return round;
}

describe("a round of a busy fair queue", () => {
  it("has 16 jobs of each key and at least 2,048 in all, if as many start in its time", () => {
    expect(begun(keysUpTo(200), 10_000).left.get("key-00007")).toBe(16);
    expect(begun(keysUpTo(2), 10_000).left.get("key-00001")).toBe(1_024);
    expect(begun(keysUpTo(100), 500).left.get("key-00007")).toBe(5);
    expect(begun(keysUpTo(900), 500).left.get("key-00007")).toBe(1);
  });

  it("gives each key the same multiple of its weight", () => {
    const weights = { weights: new Map([["key-00001", 99]]), defaultWeight: 1 };
    expect([...begun(keysUpTo(2), 2_000, weights).left.values()]).toEqual([20, 1_980]);
  });

  it("gives each key its weight once if there are more keys than it knows, and takes from each", () => {
    const round = begun(keysUpTo(10), 10_000, EQUAL, true);
    expect(new Set(round.left.values())).toEqual(new Set([1]));
    expect([round.lastKey, round.isScanned]).toEqual(["key-00009", true]);
  });

  it("is over when each key has given its part, or has no more", () => {
    const round = begun(["a", "b"], 4, EQUAL);
    expect(["a", "a", "a", "b", "c"].map((key) => round.take(key))).toEqual([true, true, false, true, false]);
    expect(round.isOver).toBe(false);
    round.tookOfKeys([{ key: "b", count: 1 }], []);
    expect(round.isOver).toBe(true);
  });

  it("a key that gave what it was asked for may give the rest later", () => {
    const round = begun(["a", "b"], 8, EQUAL);
    round.tookOfKeys([{ key: "a", count: 3 }], rowsOf("a", "a", "a"));
    expect([...round.left]).toEqual([
      ["a", 1],
      ["b", 4],
    ]);
  });
});
