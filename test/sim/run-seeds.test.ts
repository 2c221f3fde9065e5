import { describe, expect, it } from "vitest";
import { runSeeds } from "./run-seeds.ts";
import type { SeedRange } from "./seed-process.ts";
import { WORLD_NAMES, worldOf } from "./worlds.ts";

const FROM = 500;
const TAKES = 10;

/** Runs seeds that take 10 ms each, and of which some fail. */
async function run(options: Partial<Parameters<typeof runSeeds>[0]>, failing: readonly number[] = []) {
  let now = 0;
  const ranges: SeedRange[] = [];
  let stopped = 0;
  const totals = await runSeeds({
    names: WORLD_NAMES,
    from: FROM,
    count: 20_000,
    processes: 2,
    endsAt: Number.POSITIVE_INFINITY,
    goesOn: true,
    onTotals: () => {},
    now: () => now,
    start: () => ({
      async run(range) {
        ranges.push(range);
        await undefined;
        now += range.count * TAKES;
        const seeds = Array.from({ length: range.count }, (_, nth) => range.from + nth);
        const findings = seeds.filter((seed) => failing.includes(seed)).map(String);
        return {
          seeds: range.count,
          units: range.count,
          events: range.count,
          milliseconds: range.count * TAKES,
          findings,
        };
      },
      stop: () => {
        stopped += 1;
      },
    }),
    ...options,
  });
  if (!options.start) expect(stopped).toBe(options.processes ?? 2);
  return { totals, ranges, seeds: [...totals.values()].reduce((sum, { seeds }) => sum + seeds, 0), now };
}

describe("seeds in several processes", () => {
  it("runs as many as it is told, each world its share of them", async () => {
    const { totals, seeds } = await run({});
    expect(seeds).toBe(20_000);
    // The last one to be served may have a whole range more.
    for (const [name, one] of totals)
      expect(Math.abs(one.seeds - worldOf(name).share * 200)).toBeLessThan(600);
    expect(WORLD_NAMES.reduce((sum, name) => sum + worldOf(name).share, 0)).toBe(100);
  });

  it("runs every world, however few seeds there are", async () => {
    const { totals, seeds } = await run({ count: 60 });
    expect(seeds).toBe(60);
    for (const one of totals.values()) expect(one.seeds).toBeGreaterThan(0);
  });

  it("leaves no gaps and runs none twice", async () => {
    const { totals, ranges } = await run({ count: 5_000 });
    for (const name of WORLD_NAMES) {
      const own = ranges.filter((range) => range.name === name).sort((a, b) => a.from - b.from);
      let next = FROM;
      for (const { from, count } of own) {
        expect(from).toBe(next);
        next += count;
      }
      expect(totals.get(name)?.seeds).toBe(next - FROM);
    }
  });

  it("names the seeds in which a process died, and goes on in the others", async () => {
    let started = 0;
    const { totals } = await run({
      names: ["jobs"],
      count: 100,
      start: () => {
        const dies = ++started === 1;
        return {
          run: async ({ count }) => {
            if (dies) throw new Error("it ended");
            return { seeds: count, units: 0, events: 0, milliseconds: 1, findings: [] };
          },
          stop: () => {},
        };
      },
    });
    expect(totals.get("jobs")).toMatchObject({
      seeds: 90,
      findings: ["jobs: it ended in the seeds 500 to 509"],
    });
  });

  it("ends in time", async () => {
    const { seeds, now } = await run({ count: 1e9, endsAt: 100_000 });
    expect(now).toBeLessThanOrEqual(100_000);
    expect(seeds * TAKES).toBeGreaterThan(90_000);
  });

  it("ends after the seeds under way when it is told to, and keeps what it has", async () => {
    const ending = new AbortController();
    const all = { names: ["jobs"], count: 3_000, processes: 1, signal: ending.signal };
    const { seeds, ranges } = await run({ ...all, onTotals: () => ending.abort() });
    expect(ranges).toHaveLength(1);
    expect(seeds).toBe(ranges[0]?.count);
  });

  it("stops after a failure unless it is to go on", async () => {
    const failing = [FROM + 15];
    const all = { names: ["jobs"], count: 3_000 };
    expect((await run({ ...all, goesOn: true }, failing)).seeds).toBe(3_000);
    const { seeds, totals } = await run({ ...all, goesOn: false }, failing);
    expect(seeds).toBeLessThan(3_000);
    expect(totals.get("jobs")?.findings).toEqual([String(FROM + 15)]);
  });
});
