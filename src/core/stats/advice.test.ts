import { describe, expect, it } from "vitest";
import { advise, rounded } from "./advice.ts";
import { LogHistogram } from "./histogram.ts";
import { statsOf } from "./job-stats.ts";
import { MOST_LIMITS, OTHER, type SeriesData, SeriesSum, SeriesTable, withLimit } from "./series.ts";

function sumOf(
  runs: readonly number[],
  more: { limits?: readonly number[]; execution?: number; nearMisses?: number } = {},
): SeriesSum {
  const histogram = new LogHistogram();
  for (const run of runs) histogram.add(run);
  const run = histogram.data();
  const { limits = [30_000], execution = 0, nearMisses = 0 } = more;
  const sum = new SeriesSum();
  sum.add({
    queue: "default",
    type: "x",
    counts: { completed: runs.length, execution, nearMisses },
    durations: run ? { run } : {},
    limits,
  });
  return sum;
}

const repeat = (count: number, value: number) => new Array<number>(count).fill(value);

describe("advise", () => {
  it("says that too little was seen", () => {
    expect(advise("x", sumOf(repeat(99, 100)))).toMatchObject({ verdict: "unknown", suggested: null });
    expect(advise("x", sumOf([])).text).toBe("Not enough runs: 0 of at least 100.");
  });

  it("keeps a limit that fits", () => {
    const advice = advise("x", sumOf(repeat(200, 10_000)));
    expect(advice).toMatchObject({ verdict: "keep", attempt: 30_000, suggested: 30_000 });
    expect(advice.text).toContain("30s fits");
  });

  it("raises a limit that cuts off too often, at least to its double", () => {
    const advice = advise("x", sumOf(repeat(980, 5_000), { execution: 20 }));
    expect(advice).toMatchObject({ verdict: "raise", suggested: 60_000 });
    expect(advice.text).toContain("20 of 1000 runs were cut off at 30s");
  });

  it("raises a limit that runs come near to", () => {
    const advice = advise("x", sumOf([...repeat(180, 5_000), ...repeat(20, 29_000)], { nearMisses: 20 }));
    expect(advice).toMatchObject({ verdict: "raise", suggested: 60_000 });
    expect(advice.text).toContain("more than 80 %");
  });

  it("lowers a limit that is far above what runs take, and never below the slowest", () => {
    const advice = advise("x", sumOf([...repeat(9_999, 100), 4_000]));
    expect(advice).toMatchObject({ verdict: "lower", suggested: 5_000 });
  });

  it("sets one where there is none", () => {
    const advice = advise("x", sumOf(repeat(100, 700), { limits: [0] }));
    expect(advice).toMatchObject({ verdict: "set", attempt: null, suggested: 2_000 });
  });

  it("names the limit seen last, and the others beside it", () => {
    const advice = advise("x", sumOf(repeat(100, 700), { limits: [0, 5_000, 9_000] }));
    expect(advice).toMatchObject({ attempt: 9_000, others: [null, 5_000] });
  });

  it("says how many runs another limit would have cut off", () => {
    const runs = [...repeat(900, 1_000), ...repeat(100, 25_000)];
    const { whatIf } = advise("x", sumOf(runs, { execution: 3 }), { attempt: 20_000 });
    expect(whatIf).toEqual({
      attempt: 20_000,
      runs: 1_000,
      wouldCut: { atLeast: 100, atMost: 100 },
      share: 0.1,
      alreadyCut: 3,
    });
    expect(advise("x", sumOf([]), { attempt: 1_000 }).whatIf).toMatchObject({ runs: 0, share: 0 });
  });

  it("rounds up to what a person would write", () => {
    expect([1, 101, 1_000, 61_000, 3_600_001].map(rounded)).toEqual([100, 200, 1_000, 90_000, 7_200_000]);
  });
});

describe("figures", () => {
  it("count how many deadlines were kept among those that were put to the test", () => {
    const sum = new SeriesSum();
    const counts = { completed: 90, late: 5, missed: 10, discarded: 8, cancelled: 2 };
    sum.add({ queue: "q", type: "t", counts, durations: {} });
    // 85 in time; 5 late and 5 ended by a timeout missed theirs; 3 of the discarded failed by themselves.
    expect(statsOf(sum, 10_000)).toMatchObject({ attainment: 85 / 95, throughput: 10 });
    expect(statsOf(new SeriesSum(), 1_000).attainment).toBeNull();
  });
});

describe("series", () => {
  const data = (queue: string, type: string): SeriesData => ({
    queue,
    type,
    counts: { completed: 1 },
    durations: {},
  });

  it("are counted separately up to a bound, and together beyond it", () => {
    const table = new SeriesTable(2);
    for (const type of ["a", "b", "c", "d", "a"]) table.add(data("q", type));
    expect(table.data().map(({ type, counts }) => [type, counts.completed])).toEqual([
      ["a", 2],
      ["b", 1],
      [OTHER, 2],
    ]);
  });

  it("come back as they were stored", () => {
    const stored = sumOf([1, 50, 3_000], { limits: [5] }).data("q", "t");
    const sum = new SeriesSum();
    sum.add(JSON.parse(JSON.stringify(stored)));
    expect(sum.data("q", "t")).toEqual(stored);
  });

  it("remember a bounded number of limits", () => {
    const limits = [1, 2, 3, 4, 5, 6, 1].reduce<readonly number[]>(withLimit, []);
    expect(limits).toHaveLength(MOST_LIMITS);
    expect(limits.at(-1)).toBe(1);
  });
});
