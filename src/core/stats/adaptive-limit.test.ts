import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AdaptiveOptions,
  type AdaptiveRule,
  adaptive,
  adaptiveOptions,
  describeLearned,
  nextLimit,
  parseAdaptive,
  periodOf,
} from "./adaptive-limit.ts";
import { LogHistogram } from "./histogram.ts";
import { type RunSpan, replayLimit } from "./replay-limit.ts";

const HOUR = 3_600_000;

function histogramOf(values: readonly number[]): LogHistogram {
  const histogram = new LogHistogram();
  for (const value of values) histogram.add(value);
  return histogram;
}

const seen = (values: readonly number[], cut = 0) => ({
  runs: histogramOf(values),
  cut,
  since: 0,
  until: HOUR,
});

const rule = (options: Partial<AdaptiveOptions> = {}) =>
  parseAdaptive({ floor: "1s", ceiling: "10m", samples: 10, ...options }, "rule");

const anyRule: fc.Arbitrary<AdaptiveRule> = fc
  .record({
    from: fc.constantFrom("p50", "p90", "p95", "p99", "max" as const),
    times: fc.double({ min: 1, max: 100, noNaN: true }),
    bounds: fc.tuple(fc.integer({ min: 1, max: 10 ** 9 }), fc.integer({ min: 1, max: 10 ** 9 })),
    samples: fc.integer({ min: 10, max: 60 }),
    step: fc.double({ min: 1.01, max: 10, noNaN: true }),
  })
  .map(({ bounds, ...rest }) => ({
    ...(rest as Pick<AdaptiveRule, "from" | "times" | "samples" | "step">),
    floor: Math.min(...bounds),
    ceiling: Math.max(...bounds),
    every: HOUR,
    window: 24 * HOUR,
  }));
const runTimes = fc.array(fc.integer({ min: 0, max: 10 ** 9 }), { maxLength: 80 });
const cuts = fc.integer({ min: 0, max: 40 });
/** A limit that an earlier period can have had. */
const previousOf = ({ floor, ceiling }: AdaptiveRule, share: number) =>
  Math.round(floor + share * (ceiling - floor));
const shares = fc.double({ min: 0, max: 1, noNaN: true });

describe("the limit of the next period (SEMANTICS 16.2)", () => {
  it("is never below the floor, above the ceiling, or more than a step from the one before", () => {
    fc.assert(
      fc.property(anyRule, runTimes, cuts, shares, (one, runs, cut, share) => {
        const previous = previousOf(one, share);
        const { limit, target } = nextLimit(one, seen(runs, cut), previous);
        expect(Number.isInteger(limit)).toBe(true);
        expect(limit).toBeGreaterThanOrEqual(one.floor);
        expect(limit).toBeLessThanOrEqual(one.ceiling);
        expect(limit).toBeLessThanOrEqual(Math.max(previous * one.step, previous + 1));
        expect(limit).toBeGreaterThanOrEqual(Math.min(previous / one.step, previous - 1));
        // Each step goes to the target and not past it.
        expect(Math.abs(target - limit)).toBeLessThanOrEqual(Math.abs(target - previous));
      }),
      { numRuns: 1_000 },
    );
  });

  it("does not fall when a run takes longer, when a long run is added or when one is cut off", () => {
    fc.assert(
      fc.property(anyRule, runTimes, cuts, shares, fc.nat(79), (one, runs, cut, share, index) => {
        fc.pre(runs.length + cut >= one.samples && runs.length > 0);
        const previous = previousOf(one, share);
        const before = nextLimit(one, seen(runs, cut), previous).limit;
        const longest = Math.max(...runs);
        const slower = runs.map((run, at) => (at === index % runs.length ? run * 2 + 1 : run));
        expect(nextLimit(one, seen(slower, cut), previous).limit).toBeGreaterThanOrEqual(before);
        // With cut runs it is not the longest: they count as longer.
        const longer = cut === 0 ? nextLimit(one, seen([...runs, longest]), previous).limit : before;
        expect(longer).toBeGreaterThanOrEqual(before);
        expect(nextLimit(one, seen(runs, cut + 1), previous).limit).toBeGreaterThanOrEqual(before);
      }),
      { numRuns: 1_000 },
    );
  });

  it("reaches its target and stays there", () => {
    fc.assert(
      fc.property(anyRule, runTimes, cuts, (one, runs, cut) => {
        let { limit, target } = nextLimit(one, seen(runs, cut));
        for (let period = 0; period < 3_000 && limit !== target; period++)
          ({ limit, target } = nextLimit(one, seen(runs, cut), limit));
        expect(limit).toBe(target);
        expect(nextLimit(one, seen(runs, cut), limit).limit).toBe(target);
      }),
    );
  });

  it("is exact: times the quantile, rounded up to its bucket", () => {
    const runs = Array.from({ length: 100 }, () => 20);
    expect(nextLimit(rule({ floor: "1ms", step: 10, ceiling: "100ms" }), seen(runs))).toMatchObject({
      limit: 60,
      target: 60,
      quantile: 20,
      previous: 100,
      runs: 100,
    });
    // 1,000 ms are in the bucket that ends at 1,023 ms.
    expect(nextLimit(rule(), seen(runs.map(() => 1_000)), 4_000)).toMatchObject({
      limit: 3_069,
      quantile: 1_023,
    });
    expect(nextLimit(rule(), seen(runs.map(() => 1_000)))).toMatchObject({ limit: 400_000, target: 3_069 });
  });

  it("is the ceiling without enough runs, and goes back to it by steps", () => {
    expect(nextLimit(rule(), seen([5]))).toMatchObject({ limit: 600_000, quantile: null });
    expect(nextLimit(rule(), seen([5]), 3_000)).toMatchObject({ limit: 4_500, target: 600_000 });
  });

  it("rises when it cuts off more than the quantile leaves out, and does not fall towards what is left", () => {
    const short = Array.from({ length: 97 }, () => 100);
    expect(nextLimit(rule(), seen(short, 3), 2_000)).toMatchObject({ limit: 3_000, quantile: null, cut: 3 });
    // One of 100 may be longer than p99.
    expect(nextLimit(rule(), seen([...short, 100, 100], 1), 2_000)).toMatchObject({ limit: 1_334 });
  });

  it("knows the same periods in all processes", () => {
    expect(periodOf({ every: HOUR }, 5 * HOUR + 1)).toBe(5 * HOUR);
    expect(periodOf({ every: HOUR }, 5 * HOUR)).toBe(5 * HOUR);
  });

  it("says what it was computed from", () => {
    expect(describeLearned(rule(), undefined)).toBe(
      "adaptive, 3 × p99 within 1s to 10m: no period with 10 runs yet, so it is the ceiling",
    );
    const runs = Array.from({ length: 20 }, () => 1_000);
    expect(describeLearned(rule(), nextLimit(rule(), seen(runs)))).toBe(
      "adaptive, 3 × p99 within 1s to 10m: 20 runs and 0 cut off from 1970-01-01T00:00:00.000Z to 1970-01-01T01:00:00.000Z; p99 is 1023ms, which asks for 3069ms, in steps of at most × 1.5 per 1h; it was 10m",
    );
    expect(describeLearned(rule(), nextLimit(rule(), seen([1])))).toContain(
      "fewer than 10, so it goes to the ceiling",
    );
    expect(describeLearned(rule(), nextLimit(rule(), seen([], 20)))).toContain(
      "more were cut off than p99 leaves out",
    );
  });
});

describe("adaptive()", () => {
  it("returns plain data that reads back as the same rule", () => {
    const said = adaptive({ floor: "5s", ceiling: "10m" });
    expect(JSON.parse(JSON.stringify(said))).toEqual({ adaptive: { floor: "5s", ceiling: "10m" } });
    const parsed = parseAdaptive(said.adaptive, "x");
    expect(parsed).toMatchObject({ from: "p99", times: 3, samples: 200, step: 1.5, every: HOUR });
    expect(parseAdaptive(adaptiveOptions(parsed), "x")).toEqual(parsed);
  });

  it.each([
    [{ ceiling: "1m" }, "adaptive.floor"],
    [{ floor: "1m" }, "adaptive.ceiling"],
    [{ floor: "2m", ceiling: "1m" }, "adaptive.floor"],
    [{ floor: "1s", ceiling: "1m", from: "p42" }, "adaptive.from"],
    [{ floor: "1s", ceiling: "1m", from: "__proto__" }, "adaptive.from"],
    [{ floor: "1s", ceiling: "1m", times: 0.5 }, "adaptive.times"],
    [{ floor: "1s", ceiling: "1m", times: Number.NaN }, "adaptive.times"],
    [{ floor: "1s", ceiling: "1m", samples: 9 }, "adaptive.samples"],
    [{ floor: "1s", ceiling: "1m", samples: 20.5 }, "adaptive.samples"],
    [{ floor: "1s", ceiling: "1m", step: 1 }, "adaptive.step"],
    [{ floor: "1s", ceiling: "1m", every: "59s" }, "adaptive.every"],
    [{ floor: "1s", ceiling: "1m", every: "2h", window: "1h" }, "adaptive.window"],
    [{ floor: "1s", ceiling: "1m", window: "31d" }, "adaptive.window"],
    [{ floor: "1s", ceiling: "1m", celing: "2m" }, "celing"],
    [null, "adaptive"],
    ["p99", "adaptive"],
  ])("refuses %j and names the field", (options, field) => {
    expect(() => adaptive(options as unknown as AdaptiveOptions)).toThrow(field);
  });
});

describe("a replay of history", () => {
  const span = (hour: number, values: readonly number[], cut = 0): RunSpan => ({
    start: hour * HOUR,
    span: HOUR,
    run: histogramOf(values).data(),
    cut,
  });
  const twenty = (value: number) => Array.from({ length: 20 }, () => value);

  it("holds the runs of each period against the limit that only earlier runs made", () => {
    const one = rule({ floor: "10ms", ceiling: "1s", step: 10 });
    const history = [span(1, twenty(20)), span(2, [...twenty(20), 500]), span(3, [500])];
    const found = replayLimit(one, history);
    // Hour 1: 1 s. Hour 2: 100 ms, a step below. Hour 3: p99 of 41 runs is 500 ms (bucket 511).
    expect(found.changes).toEqual([
      { at: 2 * HOUR, limit: 100 },
      { at: 3 * HOUR, limit: 1_000 },
    ]);
    expect(found).toMatchObject({ limit: 1_000, lowest: 100, highest: 1_000, runs: 42, alreadyCut: 0 });
    expect(found.wouldCut).toEqual({ atLeast: 1, atMost: 1 });
  });

  it("forgets what left the window", () => {
    const one = rule({ floor: "10ms", ceiling: "1s", step: 10, every: "1h", window: "1h" });
    const found = replayLimit(one, [
      span(1, twenty(300)),
      span(2, twenty(20)),
      span(3, twenty(20)),
      span(4, [20]),
    ]);
    expect(found.changes.map(({ limit }) => limit)).toEqual([909, 91, 60]);
  });

  it("ends with the limit of an engine that lived through it", () => {
    fc.assert(
      fc.property(anyRule, fc.array(runTimes, { minLength: 1, maxLength: 12 }), (one, hours) => {
        const spans = hours.map((runs, hour) => span(hour + 1, runs));
        let limit = one.ceiling;
        for (let hour = 1; hour < hours.length; hour++) {
          const runs = hours.slice(0, hour).flat();
          limit = nextLimit(one, seen(runs), limit).limit;
        }
        expect(replayLimit(one, spans)).toMatchObject({ limit });
      }),
    );
  });

  it("says nothing about no runs", () => {
    expect(replayLimit(rule(), [])).toMatchObject({ limit: 600_000, runs: 0, share: 0, changes: [] });
  });
});
