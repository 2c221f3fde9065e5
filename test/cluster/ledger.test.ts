import { describe, expect, it } from "vitest";
import { Ledger, type Survived } from "./ledger.ts";

/** A job with accepted verdicts as [fence, moment], masters replaced at moments, and what survived. */
function judged(
  verdicts: readonly (readonly [number, number])[],
  promotions: readonly number[],
  survived: Survived,
) {
  const ledger = new Ledger();
  ledger.acknowledge("a");
  for (const [fence, at] of verdicts) ledger.accepted("a", fence, at);
  ledger.promotions.push(...promotions);
  return ledger.judge(() => survived);
}

const done = (fence: number, completed = 1): Survived => ({ row: { state: "completed", fence }, completed });

describe("the ledger of the cluster lane", () => {
  it("accepts one verdict that is there", () => {
    expect(judged([[1, 10]], [], done(1))).toEqual({ lost: 0, unfinished: 0, takenBack: 0, broken: [] });
  });

  it("accepts a verdict whose answer was lost", () => {
    expect(judged([], [], done(1)).broken).toEqual([]);
  });

  it("counts a verdict that is gone after a failover, if the history has the other one alone", () => {
    const verdicts = [
      [1, 10],
      [2, 30],
    ] as const;
    expect(judged(verdicts, [20], done(2))).toMatchObject({ takenBack: 1, broken: [] });
  });

  it("refuses two verdicts in one history, also after a failover", () => {
    const verdicts = [
      [1, 10],
      [2, 30],
    ] as const;
    expect(judged(verdicts, [20], done(2, 2)).broken).toHaveLength(1);
  });

  it("refuses a verdict that is gone although no master died after it", () => {
    const verdicts = [
      [1, 25],
      [2, 30],
    ] as const;
    expect(judged(verdicts, [20], done(2)).broken).toHaveLength(1);
  });

  it("refuses two accepted verdicts of one claim", () => {
    const verdicts = [
      [1, 10],
      [1, 30],
    ] as const;
    expect(judged(verdicts, [20], done(1)).broken).toHaveLength(1);
  });

  it("refuses a completed job without a verdict in its history, and a verdict of a job that is not completed", () => {
    expect(judged([[1, 10]], [], done(1, 0)).broken).toHaveLength(1);
    const open: Survived = { row: { state: "active", fence: 1 }, completed: 1 };
    expect(judged([], [], open)).toMatchObject({ unfinished: 1, broken: [expect.any(String)] });
  });

  it("counts jobs that are gone", () => {
    expect(judged([[1, 10]], [20], { row: null, completed: 0 })).toMatchObject({ lost: 1, takenBack: 0 });
  });
});
