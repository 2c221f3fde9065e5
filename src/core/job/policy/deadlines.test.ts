import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  discarded,
  enqueued,
  policyOf,
  retryable,
  running,
  T0,
} from "../../../../test/support/rows.ts";
import { earlier, type Instant } from "../../time.ts";
import { imageOf, rereadImage } from "../decide/decision.ts";
import { dueAtOf, HIGHEST_PRIORITY, nextFence, type Policy, rankOf } from "../job.ts";
import {
  activeWakeAt,
  anchorOf,
  attemptLimits,
  deadlineBehind,
  isVisibilityTimeout,
  longestSilence,
  SWEEP_MARGIN,
  softKind,
  stallAtOf,
  stallMargin,
  waitingWake,
} from "./deadlines.ts";

const limit = fc.option(fc.integer({ min: 1, max: 1e11 }), { nil: null });
const instant = fc.integer({ min: T0, max: T0 + 1e11 });
const policyBy: fc.Arbitrary<Policy> = fc
  .record({
    attempt: limit,
    grace: fc.option(fc.nat(1e9), { nil: null }),
    heartbeat: limit,
    beats: fc.constantFrom("worker", "handler"),
    hears: fc.boolean(),
  })
  .map((fields) => ({ ...policyOf(), ...fields }) as Policy);

describe("3.2 properties of the instants (3.7)", () => {
  it("softAt is never after hardAt, nor after totalAt, nor before the start", () => {
    fc.assert(
      fc.property(instant, policyBy, limit, (startedAt, policy, left) => {
        const totalAt = left === null ? null : startedAt + left;
        const { softAt, hardAt, stallAt } = attemptLimits(startedAt, policy, totalAt);
        expect(softAt).toBe(earlier(policy.attempt === null ? null : startedAt + policy.attempt, totalAt));
        if (softAt !== null && policy.grace !== null) expect(hardAt).toBe(softAt + policy.grace);
        else expect(hardAt).toBeNull();
        if (stallAt !== null) expect(stallAt).toBeGreaterThan(startedAt);
      }),
    );
  });

  it("the sweep looks at a running attempt at the first instant that concerns it, margins included", () => {
    fc.assert(
      fc.property(instant, policyBy, fc.option(instant, { nil: null }), (startedAt, policy, seenAt) => {
        const limits = attemptLimits(startedAt, policy, null);
        const row = { startedAt, heartbeat: policy.heartbeat, ...limits };
        const wakeAt = activeWakeAt(row, policy.hears, seenAt);
        const silentAt = stallAtOf(row, seenAt);
        const causes: Instant[] = [];
        if (row.hardAt !== null) causes.push(row.hardAt + (policy.hears ? SWEEP_MARGIN : 0));
        if (silentAt !== null) causes.push(silentAt + stallMargin(row.stallAt, policy.hears));
        expect(wakeAt).toBe(causes.length === 0 ? null : Math.min(...causes));
      }),
    );
  });

  it("the margin of a second is only for workers that hear the signal", () => {
    const row = { startedAt: T0, hardAt: at("30s"), stallAt: null, heartbeat: null };
    expect(SWEEP_MARGIN).toBe(1_000);
    expect([activeWakeAt(row, true), activeWakeAt(row, false)]).toEqual([at("31s"), at("30s")]);
  });

  it("a waiting job is woken no later than its start and its end, and only its start is ready", () => {
    const state = fc.constantFrom("scheduled", "retryable", "available", "pending");
    // Few instants, so that some fall together.
    const near = fc.integer({ min: T0, max: T0 + 5 });
    const maybe = fc.option(near, { nil: null });
    fc.assert(
      fc.property(state, near, maybe, maybe, (name, dueAt, waitAt, totalAt) => {
        const { wake, wakeAt } = waitingWake({ state: name, rank: rankOf(0, dueAt), waitAt, totalAt });
        const endsAt = earlier(waitAt, totalAt);
        const startsAt = name === "scheduled" || name === "retryable" ? dueAt : null;
        expect(wakeAt).toBe(earlier(startsAt, endsAt));
        expect(wake).toBe(startsAt !== null && wakeAt === startsAt ? "ready" : "decide");
      }),
    );
  });
});

describe("silence (3.3, 3.6, 4.3)", () => {
  it("the shorter of heartbeat and visibility timeout ends the attempt, and says as what", () => {
    const by = (heartbeat: number | null, visibility?: number) => {
      const named = policyOf({ timeouts: { heartbeat: "1s" } });
      const policy = { ...named, heartbeat, ...(visibility !== undefined && { visibility }) };
      return [longestSilence(policy), isVisibilityTimeout(policy)];
    };
    expect(by(10, 20)).toEqual([10, false]);
    expect(by(20, 10)).toEqual([10, true]);
    expect(by(10, 10)).toEqual([10, true]);
    expect(by(null, 10)).toEqual([10, true]);
    expect(by(10)).toEqual([10, false]);
    expect(by(null)).toEqual([null, false]);
  });

  it("a heartbeat that nobody named does not cut short a visibility timeout that somebody did", () => {
    const policy = policyOf({}, { remote: true, hears: false, visibility: 300_000 });
    expect([longestSilence(policy), isVisibilityTimeout(policy)]).toEqual([300_000, true]);
  });

  it("beats move stallAt only: the worker's last one counts, the start at first", () => {
    const row = running();
    expect(stallAtOf(row, null)).toBe(at("60s"));
    expect(stallAtOf(row, at("30s"))).toBe(at("90s"));
    expect(stallAtOf(row, T0 - 5)).toBe(at("60s"));
    expect(stallAtOf(enqueued(), at("30s"))).toBeNull();
  });

  it("the soft signal stands for total where both end at one instant", () => {
    expect(softKind({ softAt: 5, totalAt: 5 })).toBe("total");
    expect(softKind({ softAt: 5, totalAt: 6 })).toBe("execution");
    expect(softKind({ softAt: 5, totalAt: null })).toBe("execution");
    expect(softKind({ softAt: null, totalAt: null })).toBe("execution");
  });
});

describe("the deadline behind a verdict", () => {
  const job = {
    startedAt: T0,
    hardAt: at("30s"),
    stallAt: at("20s"),
    heartbeat: 20_000,
    waitAt: at("5s"),
    totalAt: at("1m"),
  };

  it.each<[string | undefined, Partial<Record<keyof typeof job, Instant | null>>, Instant | null]>([
    ["job.ttl_expired", { startedAt: null }, at("5s")],
    ["job.total_timeout", { startedAt: null }, at("1m")],
    ["job.timeout", { stallAt: at("50s") }, at("30s")],
    ["job.total_timeout", { stallAt: at("50s") }, at("30s")],
    ["job.timeout", {}, at("20s")],
    ["job.stalled", {}, at("20s")],
    ["job.stalled", { stallAt: null }, at("25s")],
    ["job.visibility_timeout", {}, at("20s")],
    ["job.claim_expired", {}, null],
    [undefined, {}, null],
  ])("the verdict %s has the deadline that caused it", (event, change, deadline) => {
    expect(deadlineBehind(event, { ...job, ...change }, at("5s"))).toBe(deadline);
  });
});

describe("rank and fence (3.8)", () => {
  const priority = fc.integer({ min: -HIGHEST_PRIORITY, max: HIGHEST_PRIORITY });

  it("a rank is exact and gives its instant back", () => {
    fc.assert(
      fc.property(priority, fc.integer({ min: 0, max: 2 ** 45 - 1 }), (level, dueAt) => {
        expect(Number.isSafeInteger(rankOf(level, dueAt))).toBe(true);
        expect(dueAtOf(rankOf(level, dueAt))).toBe(dueAt);
      }),
    );
  });

  it("a higher priority goes first, whatever the instants; within one, the earlier", () => {
    fc.assert(
      fc.property(priority, priority, instant, instant, (high, low, a, b) => {
        fc.pre(high > low);
        expect(rankOf(high, a)).toBeLessThan(rankOf(low, b));
        if (a < b) expect(rankOf(high, a)).toBeLessThan(rankOf(high, b));
      }),
    );
  });

  it("the next fence is greater than the last, whatever the salts", () => {
    const salt = fc.integer({ min: 0, max: 2 ** 21 - 1 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 30 }), salt, salt, (count, one, two) => {
        const fence = count * 2 ** 21 + one;
        expect(nextFence(fence, two)).toBeGreaterThan(fence);
        expect(Number.isSafeInteger(nextFence(fence, two))).toBe(true);
      }),
    );
  });
});

describe("a row that was read while a sweep was deciding on it", () => {
  const said = { enqueue: { timeouts: { total: "5m", heartbeat: "20s" } } } as const;
  const delayed = enqueued({ enqueue: { delay: "1m", timeouts: { total: "5m" } } });
  const deaf = { hears: false, remote: true };

  it.each([
    ["waits", enqueued(said)],
    ["is scheduled", delayed],
    ["was claimed", claimed(said)],
    ["runs", running(said)],
    ["runs at a worker that hears nothing", running({ ...said, worker: deaf })],
    ["waits for its retry", retryable(said)],
  ])("is written again with its own wakeAt if it %s", (_what, row) => {
    const swept = { ...row, wakeAt: at("1h") };
    expect(rereadImage(swept)).toEqual(imageOf(row));
  });

  it("keeps a finished one as it is", () => {
    expect(rereadImage(discarded())).toEqual(imageOf(discarded()));
  });
});

describe("the anchor of an attempt", () => {
  it.each([null, 1_500, 1_966, 2_049, 2_088, 5_000])(
    "gives the same soft deadline again with total at %s",
    (totalAt) => {
      const policy = { ...policyOf(), attempt: 966 };
      // The start is the earliest time that it may have been, and the limits count from the latest.
      const startedAt = 1_000;
      const { softAt } = attemptLimits(1_122, policy, totalAt);
      const anchor = anchorOf({ startedAt, softAt, totalAt }, policy);
      expect(anchor).toBeGreaterThanOrEqual(startedAt);
      expect(attemptLimits(anchor, policy, totalAt).softAt).toBe(softAt);
    },
  );
});
