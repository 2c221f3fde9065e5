import { describe, expect, it } from "vitest";
import { type Anchor, anchorAt, needsAnchor, type Reading, restartedAt, timeAt } from "./file-time.ts";

const WALL = 1_800_000_000_000;
const MINUTES = 60_000;
const DAY = 86_400_000;

const start: Reading = { boot: "one", monotonic: 5_000, slept: 0, wall: WALL };
const anchor: Anchor = { ...start, time: WALL };

/** The clocks after so much time awake, so much asleep, and with a wall clock that was set by so much. */
function later(passed: number, { slept = 0, set = 0, from = start } = {}): Reading {
  return {
    boot: from.boot,
    monotonic: from.monotonic + passed,
    slept: from.slept + slept,
    wall: from.wall + passed + slept + set,
  };
}

describe("the time of a file", () => {
  it("starts at the wall clock", () => {
    expect(timeAt(undefined, start)).toBe(WALL);
    expect(anchorAt(undefined, start)).toEqual(anchor);
  });

  it("passes as time does", () => {
    expect(timeAt(anchor, later(7 * DAY))).toBe(WALL + 7 * DAY);
  });

  it.each([10 * MINUTES, -10 * MINUTES])("is not moved by a wall clock that is set by %i ms", (set) => {
    const reading = later(1_000, { set });
    expect(timeAt(anchor, reading)).toBe(WALL + 1_000);
    const next = anchorAt(anchor, reading);
    expect(next.time).toBe(WALL + 1_000);
    // From the next anchor on it creeps: 3 ms in half a minute, whichever process looks, and at every look.
    const half = timeAt(next, later(31_000, { set }));
    expect(half - (WALL + 31_000)).toBeCloseTo(Math.sign(set) * 3, 2);
    expect(timeAt(anchorAt(next, later(11_000, { set })), later(31_000, { set }))).toBeCloseTo(half, 2);
  });

  it.each([1_000, -1_000])("has closed a difference of %i ms to the wall clock after 3 hours", (set) => {
    const next = anchorAt(anchor, later(0, { set }));
    expect(timeAt(next, later(3 * 60 * MINUTES, { set }))).toBe(WALL + set + 3 * 60 * MINUTES);
  });

  it("never goes back, and never runs faster than the creep", () => {
    let at = anchorAt(anchor, later(0, { set: -10 * MINUTES }));
    for (let passed = 1; passed <= 100_000; passed += 997) {
      const next = anchorAt(at, later(passed, { set: passed % 2 ? DAY : -DAY }));
      const rate = (next.time - at.time) / (next.monotonic - at.monotonic);
      expect(rate).toBeGreaterThan(0.9998);
      expect(rate).toBeLessThan(1.0002);
      at = next;
    }
  });

  it("counts a sleep of the machine, once and at once", () => {
    const reading = later(2_000, { slept: 8 * 60 * MINUTES });
    expect(timeAt(anchor, reading)).toBe(WALL + 2_000 + 8 * 60 * MINUTES);
    expect(needsAnchor(anchor, reading)).toBe("now");
    const next = anchorAt(anchor, reading);
    expect(needsAnchor(next, reading)).toBeNull();
    expect(timeAt(next, later(1_000, { from: reading }))).toBe(WALL + 3_000 + 8 * 60 * MINUTES);
  });

  it("does not count noise between two clocks as a sleep", () => {
    let at = anchor;
    for (let round = 1; round <= 100; round++)
      at = anchorAt(at, { ...later(round * 20_000), slept: (round % 11) * 9 });
    expect(at.time).toBe(WALL + 100 * 20_000);
  });

  it("asks the wall clock again after a boot", () => {
    const booted: Reading = { boot: "two", monotonic: 100, slept: 0, wall: WALL + DAY };
    expect(timeAt(anchor, booted)).toBe(WALL + DAY);
    expect(needsAnchor(anchor, booted)).toBe("now");
  });

  it("goes back to the wall clock at a restart, if it was ahead by more than a second", () => {
    const hourAhead: Anchor = { ...start, time: WALL + 60 * MINUTES };
    expect(restartedAt(hourAhead, later(1_000)).time).toBe(WALL + 1_000);
    const booted: Reading = { boot: "two", monotonic: 100, slept: 0, wall: WALL + 5_000 };
    expect(timeAt(hourAhead, booted)).toBe(WALL + 5_000);
    expect(restartedAt(anchor, later(DAY, { set: -2 * DAY })).time).toBe(WALL - DAY);
    expect(restartedAt(anchor, later(DAY, { set: -60_000 })).time).toBe(WALL + DAY - 60_000);
    expect(restartedAt(anchor, later(0, { set: -1_000 })).time).toBe(WALL);
  });

  it("stays where it was if a machine boots with a clock that was never set", () => {
    for (const wall of [0, Date.UTC(2015, 0, 1), Date.UTC(2025, 11, 31)]) {
      expect(timeAt(anchor, { boot: "two", monotonic: 100, slept: 0, wall })).toBe(WALL);
    }
  });

  it("gets a new anchor every 20 s", () => {
    expect(needsAnchor(undefined, start)).toBe("now");
    expect(needsAnchor(anchor, later(19_999))).toBeNull();
    expect(needsAnchor(anchor, later(20_000))).toBe("soon");
  });
});
