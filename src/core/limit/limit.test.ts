import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { effectiveLimit, type KeyLimit, type KeyUse, parseLimit, parseOverride, roomOf } from "./limit.ts";

const IDLE: KeyUse = { available: 0, active: 0, unstarted: 0, retryable: 0, starts: 0 };

describe("the room of a limit", () => {
  it.each<[KeyLimit, Partial<KeyUse>, number]>([
    [{}, { available: 5, active: 500 }, Number.POSITIVE_INFINITY],
    [{ concurrency: 3 }, {}, 3],
    [{ concurrency: 3 }, { available: 1, active: 1 }, 1],
    [{ concurrency: 3 }, { available: 1, active: 9 }, 0],
    [{ concurrency: 1 }, { retryable: 1 }, 1],
    [{ concurrency: 1, strict: true }, { retryable: 1 }, 0],
    [{ rate: { limit: 5, per: 1 } }, { available: 1, active: 3, unstarted: 1, starts: 2 }, 1],
    [{ rate: { limit: 5, per: 1 } }, { active: 100 }, 5],
    [{ concurrency: 10, rate: { limit: 5, per: 1 } }, { active: 7, starts: 1 }, 3],
    [{ concurrency: 10, rate: { limit: 5, per: 1 } }, { active: 1, starts: 4 }, 1],
  ])("%j with %j is %d", (limit, use, room) => {
    expect(roomOf(limit, { ...IDLE, ...use })).toBe(room);
  });

  it("is never more than what a limit leaves, and filling it leaves none", () => {
    const count = fc.nat(20);
    const use = fc.record({ available: count, active: count, retryable: count, starts: count });
    const limits = fc.record({
      concurrency: fc.integer({ min: 1, max: 20 }),
      rate: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(use, limits, fc.nat(20), (counted, { concurrency, rate }, nth) => {
        const unstarted = Math.min(nth, counted.active);
        const limit: KeyLimit = { concurrency, rate: { limit: rate, per: 1_000 } };
        const before = { ...counted, unstarted };
        const room = roomOf(limit, before);
        const after = { ...before, available: before.available + room };
        expect(roomOf(limit, after)).toBe(0);
        if (room === 0) return;
        expect(after.available + after.active).toBeLessThanOrEqual(concurrency);
        expect(after.available + unstarted + after.starts).toBeLessThanOrEqual(rate);
      }),
    );
  });
});

describe("an override", () => {
  const own: KeyLimit = { concurrency: 2, rate: { limit: 1, per: 1_000 } };

  it("goes before what jobs say, part by part; null lifts a part", () => {
    expect(effectiveLimit(own, null)).toBe(own);
    expect(effectiveLimit(own, { concurrency: 9 })).toEqual({ ...own, concurrency: 9 });
    expect(effectiveLimit(own, { concurrency: null })).toEqual({ rate: own.rate });
    expect(effectiveLimit(own, { rate: null, concurrency: null })).toEqual({});
    expect(effectiveLimit({ concurrency: 1, strict: true }, { concurrency: 2 })).toEqual({
      concurrency: 2,
      strict: true,
    });
  });

  it("is parsed, with none for null", () => {
    expect(parseOverride({ concurrency: "none", rate: { limit: 3, per: "2s" } }, "limit")).toEqual({
      concurrency: null,
      rate: { limit: 3, per: 2_000 },
    });
  });
});

describe("a limit as it is written", () => {
  it("becomes what is kept with the job", () => {
    expect(parseLimit({ key: "k", concurrency: 1, strict: true, onLimit: "wait" }, "limit")).toEqual({
      key: "k",
      limit: { concurrency: 1, strict: true },
    });
    const paced = parseLimit(
      { key: "k", rate: { limit: 2, per: "1m" }, onLimit: { reschedule: "5s" } },
      "limit",
    );
    expect(paced.limit).toEqual({ rate: { limit: 2, per: 60_000 }, onLimit: { after: 5_000 } });
  });
});
