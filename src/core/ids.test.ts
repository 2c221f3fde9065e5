import { describe, expect, it } from "vitest";
import { createIdSource, UUID, UUID_V7 } from "./ids.ts";
import { randomInt, seededRandom } from "./random.ts";

function fillWith(seed: number): (bytes: Uint8Array) => void {
  const random = seededRandom(seed);
  return (bytes) => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = randomInt(random, 256);
  };
}

/** The milliseconds an id carries in its first 48 bits. */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

describe("ids", () => {
  it("are UUIDv7 with the time in front", () => {
    const next = createIdSource(() => 1_800_000_000_123.9, fillWith(1));
    const id = next();
    expect(id).toMatch(UUID_V7);
    expect(id).toMatch(UUID);
    expect(timeOf(id)).toBe(1_800_000_000_123);
  });

  it("a million of them only grow, all valid, on a clock that stands, runs and jumps back", () => {
    const random = seededRandom(7);
    let now = 1_800_000_000_000;
    const next = createIdSource(() => now, fillWith(2));
    let last = "";
    for (let nth = 0; nth < 1_000_000; nth++) {
      const step = random();
      if (step < 0.01) now += 1;
      else if (step < 0.011) now -= randomInt(random, 5_000);
      const id = next();
      // One assertion per id would take longer than all ids together.
      if (id <= last || !UUID_V7.test(id)) expect.fail(`${id} after ${last}, the ${nth}th`);
      last = id;
    }
    expect(timeOf(last)).toBeGreaterThanOrEqual(1_800_000_000_000);
  });

  it("a clock going backwards does not take the time of the ids back", () => {
    const times = [5_000, 4_000, 1, 5_000];
    const next = createIdSource(() => times.shift() ?? 5_001, fillWith(3));
    const ids = [next(), next(), next(), next(), next()];
    expect(ids).toEqual([...ids].sort());
    expect(ids.map(timeOf)).toEqual([5_000, 5_000, 5_000, 5_000, 5_001]);
  });

  it("a counter that runs over moves the time on and repeats nothing", () => {
    const start = (bytes: Uint8Array) => bytes.fill(0);
    const next = createIdSource(() => 9_000, start, 4);
    const ids = Array.from({ length: 10 }, next);
    expect(ids.map(timeOf)).toEqual([9_000, 9_000, 9_000, 9_000, 9_001, 9_001, 9_001, 9_001, 9_002, 9_002]);
    expect(new Set(ids).size).toBe(10);
    expect(ids).toEqual([...ids].sort());
  });

  it("two sources at the same instant differ by their random bits", () => {
    const ids = [4, 5, 6].flatMap((seed) =>
      Array.from(
        { length: 1_000 },
        createIdSource(() => 1, fillWith(seed)),
      ),
    );
    expect(new Set(ids).size).toBe(3_000);
  });
});

describe("seeded random", () => {
  it("repeats a run from its seed, and differs between seeds", () => {
    const runOf = (seed: number) => Array.from({ length: 20 }, seededRandom(seed));
    expect(runOf(42)).toEqual(runOf(42));
    expect(runOf(42)).not.toEqual(runOf(43));
  });

  it("gives numbers in [0, 1), spread over the whole range", () => {
    const random = seededRandom(1);
    const buckets = Array<number>(10).fill(0);
    for (let nth = 0; nth < 10_000; nth++) {
      const number = random();
      if (number < 0 || number >= 1) expect.fail(`${number}`);
      buckets[Math.floor(number * 10)] = (buckets[Math.floor(number * 10)] as number) + 1;
    }
    for (const count of buckets) expect(Math.abs(count - 1_000)).toBeLessThan(200);
  });

  it("whole numbers stay below their bound and reach both ends", () => {
    const random = seededRandom(2);
    const seen = new Set(Array.from({ length: 200 }, () => randomInt(random, 5)));
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4]);
  });
});
