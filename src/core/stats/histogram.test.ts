import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUCKETS, bucketOf, LogHistogram, lowerOf, RESOLUTION, upperOf } from "./histogram.ts";

const duration = fc.oneof(
  fc.nat({ max: 100 }),
  fc.nat({ max: 2 ** 31 - 1 }),
  fc.double({ min: 0, max: 2 ** 42 - 1, noNaN: true }).map(Math.floor),
);
const durations = fc.array(duration, { minLength: 1, maxLength: 200 });

function histogramOf(values: readonly number[]): LogHistogram {
  const histogram = new LogHistogram();
  for (const value of values) histogram.add(value);
  return histogram;
}

describe("buckets", () => {
  it("hold every value between their bounds, and follow each other without a gap", () => {
    fc.assert(
      fc.property(duration, (value) => {
        const bucket = bucketOf(value);
        expect(lowerOf(bucket)).toBeLessThanOrEqual(value);
        expect(upperOf(bucket)).toBeGreaterThanOrEqual(value);
      }),
    );
    for (let bucket = 1; bucket < BUCKETS; bucket++) {
      expect(lowerOf(bucket)).toBe(upperOf(bucket - 1) + 1);
      expect(bucketOf(lowerOf(bucket))).toBe(bucket);
      expect(bucketOf(upperOf(bucket))).toBe(bucket);
    }
  });

  it("take what is below, beyond, a fraction or no number at all", () => {
    expect([-1, -0, 0, Number.NaN].map(bucketOf)).toEqual([0, 0, 0, 0]);
    expect(bucketOf(3.9)).toBe(3);
    expect(bucketOf(31.9)).toBe(31);
    expect(bucketOf(Number.POSITIVE_INFINITY)).toBe(BUCKETS - 1);
    expect(bucketOf(2 ** 42)).toBe(BUCKETS - 1);
  });
});

describe("a histogram", () => {
  it("gives percentiles that are off by no more than its resolution", () => {
    fc.assert(
      fc.property(durations, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
        const sorted = [...values].sort((a, b) => a - b);
        const rank = Math.max(1, Math.ceil(share * sorted.length));
        const exact = sorted[rank - 1] as number;
        const said = histogramOf(values).percentile(share) as number;
        // Half a millisecond comes from rounding to a whole one.
        expect(Math.abs(said - exact)).toBeLessThanOrEqual(exact * RESOLUTION + 0.5);
      }),
    );
  });

  it("adds up to what one histogram would have counted", () => {
    fc.assert(
      fc.property(durations, durations, (first, second) => {
        const merged = LogHistogram.of(histogramOf(first).data());
        merged.merge(JSON.parse(JSON.stringify(histogramOf(second).data())));
        const all = histogramOf([...first, ...second]);
        expect(merged.data()?.buckets).toEqual(all.data()?.buckets);
        expect(merged.total).toBe(all.total);
        expect(merged.sum).toBeCloseTo(all.sum, -2);
      }),
    );
  });

  it("tells what was counted since a mark, which added to what was before is all of it", () => {
    fc.assert(
      fc.property(durations, fc.array(duration, { maxLength: 50 }), (before, after) => {
        const histogram = histogramOf(before);
        const mark = histogram.mark();
        expect(histogram.since(mark)).toBeUndefined();
        for (const value of after) histogram.add(value);
        const since = histogram.since(mark);
        expect(since?.buckets).toEqual(histogramOf(after).data()?.buckets);
        const sum = LogHistogram.of(histogramOf(before).data());
        if (since) sum.merge(since);
        expect(sum.data()?.buckets).toEqual(histogram.data()?.buckets);
      }),
    );
  });

  it("bounds how many values are above a limit, tightly", () => {
    fc.assert(
      fc.property(durations, duration, (values, limit) => {
        const exact = values.filter((value) => value > limit).length;
        const { atLeast, atMost } = histogramOf(values).above(limit);
        expect(atLeast).toBeLessThanOrEqual(exact);
        expect(atMost).toBeGreaterThanOrEqual(exact);
        const unsure = values.filter((value) => bucketOf(value) === bucketOf(limit)).length;
        expect(atMost - atLeast).toBeLessThanOrEqual(unsure);
      }),
    );
  });

  it("says nothing of nothing, and leaves out what is no count", () => {
    const empty = new LogHistogram();
    expect(empty.percentile(0.5)).toBeNull();
    expect(empty.data()).toBeUndefined();
    empty.merge({ sum: 0, buckets: [-1, 5, BUCKETS, 5, 1.5, 5, 3, -2, 4] });
    expect(empty.total).toBe(0);
  });
});
