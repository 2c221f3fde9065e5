import { describe, expect, it } from "vitest";
import type { JobRow } from "../job.ts";
import { isLate, nearMissOf } from "./near-miss.ts";

function completed(changes: Partial<JobRow>): JobRow {
  const row = {
    state: "completed",
    createdAt: 0,
    startedAt: 1_000,
    softAt: 2_000,
    totalAt: null,
    options: null,
  };
  return { ...row, finishedAt: 1_500, ...changes } as JobRow;
}

describe("near misses", () => {
  it.each([
    ["half of the attempt", { finishedAt: 1_500 }, null],
    ["exactly 80 %", { finishedAt: 1_800 }, null],
    ["more than 80 %", { finishedAt: 1_850 }, { kind: "execution", used: 0.85, limit: 1_000, late: false }],
    [
      "after the soft signal",
      { finishedAt: 2_100 },
      { kind: "execution", used: 1.1, limit: 1_000, late: true },
    ],
    [
      "most of the total",
      { softAt: null, totalAt: 2_000, finishedAt: 1_900 },
      { kind: "total", used: 0.95, limit: 2_000, late: false },
    ],
    [
      "an attempt that the total cuts",
      { softAt: 2_000, totalAt: 2_000, finishedAt: 1_900 },
      { kind: "total", used: 0.95, limit: 2_000, late: false },
    ],
    ["no limit at all", { softAt: null, finishedAt: 9_000 }, null],
    ["a job that failed", { state: "discarded" as const, finishedAt: 1_990 }, null],
  ])("%s", (_name, changes, expected) => {
    expect(nearMissOf(completed(changes))).toEqual(expected);
  });

  it("a total that was anchored anew counts from there", () => {
    const row = completed({
      softAt: null,
      totalAt: 2_000,
      finishedAt: 1_500,
      options: { anchoredAt: 1_000 },
    });
    expect(nearMissOf(row)).toBeNull();
  });

  it("only a completed job is late", () => {
    expect(isLate(completed({ finishedAt: 2_000 }))).toBe(true);
    expect(isLate(completed({ finishedAt: 1_999 }))).toBe(false);
    expect(isLate(completed({ finishedAt: 2_000, state: "cancelled" }))).toBe(false);
  });
});
