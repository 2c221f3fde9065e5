import { describe, expect, it } from "vitest";
import { RoundPace } from "./round-pace.ts";

/** Claims of `size` jobs every `every` milliseconds. Returns what a round may have after each. */
function claims(pace: RoundPace, { size, every, count }: Record<"size" | "every" | "count", number>) {
  return Array.from({ length: count }, (_, nth) => {
    const now = 1_000 + (nth + 1) * every;
    pace.note(size, now);
    return pace.rounds(now)?.most;
  });
}

describe("the pace of rounds", () => {
  it("a busy queue has rounds, of as many jobs as start in 250 ms", () => {
    const pace = new RoundPace();
    expect(pace.rounds(1_000)).toBeUndefined();
    // 20 jobs in a millisecond.
    expect(claims(pace, { size: 400, every: 20, count: 4 })).toEqual([undefined, 5_000, 5_000, 5_000]);
  });

  it("a queue in which jobs start slowly has none", () => {
    expect(new Set(claims(new RoundPace(), { size: 10, every: 20, count: 80 }))).toEqual(
      new Set([undefined]),
    );
    expect(new Set(claims(new RoundPace(), { size: 400, every: 200, count: 8 }))).toEqual(
      new Set([undefined]),
    );
  });

  it("a busy queue whose claims are delayed stays busy, as long as its jobs start fast enough", () => {
    const pace = new RoundPace();
    claims(pace, { size: 400, every: 20, count: 2 });
    pace.note(400, 1_190);
    expect(pace.rounds(1_190)?.most).toBeCloseTo(400 * (250 / 150));
    pace.note(400, 1_390);
    expect(pace.rounds(1_390)).toBeUndefined();
  });

  it("says how many jobs start in a tenth of a second", () => {
    const pace = new RoundPace();
    claims(pace, { size: 400, every: 20, count: 4 });
    expect(pace.rounds(1_080)?.startSoon).toBe(2_000);
  });

  it("what was measured is forgotten after the time of a round, and the rounds go on when the queue is busy again", () => {
    const pace = new RoundPace();
    claims(pace, { size: 400, every: 20, count: 4 });
    const rounds = pace.rounds(1_330);
    expect(rounds).toBeDefined();
    expect(pace.rounds(1_331)).toBeUndefined();
    claims(pace, { size: 400, every: 20, count: 4 });
    expect(pace.rounds(1_080)).toBe(rounds);
  });
});
