import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  DAY,
  decideOk,
  discarded,
  enqueued,
  errorOf,
  failEvent,
  half,
  ID,
  MINUTE,
  namesOf,
  newJob,
  pending,
  retryable,
  running,
  type Said,
  step,
  T0,
} from "../../../../test/support/rows.ts";
import { dueAtOf } from "../job.ts";
import { decide } from "./decide.ts";

describe("4.6 manual retry", () => {
  const said: Said = {
    settings: {
      timeouts: { wait: "5m", total: "1h", attempt: "30s" },
      retry: { onExhausted: "dead-letter" },
    },
  };
  const again = { type: "retry" } as const;

  it("works only from discarded", () => {
    expect(decideOk(discarded(said), again, at("2h")).image.state).toBe("available");
    const completed = step(running(said), { type: "succeed", signalled: false }, at("1s"));
    expect(decide(completed, again, at("2h"), half)).toEqual({ ok: false, because: "invalid_state" });
  });

  it("attempts, returns and expiredClaims start anew", () => {
    const worn = { ...discarded(said), attempt: 3, returns: 7, expiredClaims: 2 };
    expect(decideOk(worn, again, at("2h")).image).toMatchObject({ attempt: 0, returns: 0, expiredClaims: 0 });
  });

  it("total and wait are re-anchored at now", () => {
    const { image } = decideOk(discarded(said), again, at("2h"));
    expect([image.totalAt, image.waitAt]).toEqual([at("3h"), at("125m")]);
    expect(dueAtOf(image.rank)).toBe(at("2h"));
  });

  it("keepDeadline leaves the deadline of the job as it was", () => {
    const kept = decideOk(discarded(said), { type: "retry", keepDeadline: true }, at("30m"));
    expect(kept.image.totalAt).toBe(at("1h"));
  });

  it("keepDeadline keeps the wait of a job that never started; one that has started has met it", () => {
    const keep = { type: "retry", keepDeadline: true } as const;
    const dropped = step(enqueued(said), { type: "drop", message: "full" }, at("1m"));
    expect(decideOk(dropped, keep, at("2m")).image.waitAt).toBe(at("5m"));
    expect(decideOk(dropped, again, at("2m")).image.waitAt).toBe(at("7m"));
    expect(decideOk(discarded(said), keep, at("2m")).image.waitAt).toBeNull();
  });

  it("a past expiresAt is dropped, one that is still to come stays", () => {
    const row = discarded({ enqueue: { expiresAt: new Date(at("10m")) } });
    const past = decideOk(row, again, at("10m"));
    expect([past.image.waitAt, past.documents?.options]).toEqual([null, null]);
    const future = decideOk(row, again, at("9m"));
    expect([future.image.waitAt, future.documents?.options]).toEqual([at("10m"), { expiresAt: at("10m") }]);
  });

  it("an inherited deadline is dropped", () => {
    const context = { parent: { id: "01890000-0000-7000-8000-0000000000ff", totalAt: at("10m") } };
    const row = discarded({ context });
    expect(row.totalAt).toBe(at("10m"));
    const decision = decideOk(row, again, at("5m"));
    expect([decision.image.totalAt, decision.documents?.options]).toEqual([null, null]);
  });

  it("with the deadline kept, the job it was inherited from is still named", () => {
    const id = "01890000-0000-7000-8000-0000000000ff";
    const row = discarded({ context: { parent: { id, totalAt: at("10m") } } });
    const kept = step(row, { type: "retry", keepDeadline: true }, at("5m"));
    expect([kept.totalAt, kept.options]).toEqual([at("10m"), { inheritedFrom: id }]);
    expect(errorOf(decideOk(kept, { type: "wake" }, at("10m"))).message).toContain(id);
  });

  it("the new anchor is kept: an extended total is counted from the retry", () => {
    const row = step(discarded(said), again, at("2h"));
    expect(row.options).toMatchObject({ anchoredAt: at("2h"), total: 3_600_000 });
    const longer = decideOk(row, { type: "extend", total: 7_200_000 }, at("130m"));
    expect(longer.image.totalAt).toBe(at("4h"));
  });

  it("policies are resolved anew; result, end times and mark are cleared; the history stays", () => {
    const before = discarded(said);
    expect([before.deadLetter, before.finishedAt]).toEqual([true, at("1s")]);
    const row = step(before, again, at("2h"));
    expect(row).toMatchObject({ policy: null, result: null, progress: null, deadLetter: false });
    expect([row.finishedAt, row.pruneAt, row.startedAt, row.softAt]).toEqual([null, null, null, null]);
    expect(row.errors).toEqual(before.errors);
    expect(row.errors).toHaveLength(1);
    expect(row.fence).toBeGreaterThan(before.fence);
  });
});

describe("4.7 an inherited deadline", () => {
  const parent = { id: "01890000-0000-7000-8000-0000000000ff", totalAt: at("10m") };
  const inherit = (said: Said) => enqueued({ ...said, context: { parent } });

  it("what is left of the parent's total is an upper bound", () => {
    expect(inherit({}).totalAt).toBe(at("10m"));
    expect(inherit({ settings: { timeouts: { total: "1h" } } }).totalAt).toBe(at("10m"));
    expect(inherit({ settings: { timeouts: { total: "5m" } } }).totalAt).toBe(at("5m"));
  });

  it("it cuts and never refuses", () => {
    const row = inherit({ enqueue: { delay: "599s" }, settings: { timeouts: { attempt: "1h" } } });
    expect([row.state, row.totalAt]).toEqual(["scheduled", at("10m")]);
  });

  it("a detached job inherits no deadline, nor does one that starts at or after it", () => {
    expect(inherit({ enqueue: { detach: true } }).totalAt).toBeNull();
    expect(inherit({ enqueue: { delay: "10m" } }).totalAt).toBeNull();
    expect(inherit({ enqueue: { delay: "1h" }, settings: { timeouts: { total: "2h" } } }).totalAt).toBe(
      at("2h"),
    );
    expect(enqueued({ context: { parent: { ...parent, totalAt: null } } }).totalAt).toBeNull();
  });

  it("the timeout that results names the inherited deadline, and its own length", () => {
    for (const settings of [{}, { timeouts: { total: "1h" } }] as const) {
      expect(errorOf(decideOk(inherit({ settings }), { type: "wake" }, at("11m")))).toMatchObject({
        type: "total_timeout",
        message: `Timed out (deadline exceeded, inherited from job ${parent.id})`,
        limit: 10 * MINUTE,
        elapsed: 11 * MINUTE,
      });
    }
    const own = errorOf(
      decideOk(inherit({ settings: { timeouts: { total: "5m" } } }), { type: "wake" }, at("5m")),
    );
    expect(own.message).toBe("Timed out (deadline exceeded, 5m total budget)");
  });
});

describe("5.1 cancel", () => {
  it.each([
    ["scheduled", enqueued({ enqueue: { delay: "1m" } })],
    ["available", enqueued()],
    ["pending", pending()],
    ["claimed", claimed()],
    ["running", running()],
    ["retryable", retryable()],
  ] as const)("a %s job is cancelled at once and its fence voided", (_name, row) => {
    const decision = decideOk(row, { type: "cancel" }, at("2s"));
    expect(decision.image).toMatchObject({ state: "cancelled", finishedAt: at("2s"), wakeAt: null });
    expect(decision.fence).toBeGreaterThan(row.fence);
    expect(namesOf(decision)).toEqual(["job.cancelled"]);
  });

  it("nothing that the handler reports afterwards counts", () => {
    const row = step(running(), { type: "cancel" }, at("2s"));
    const late = { type: "succeed", signalled: false } as const;
    expect(decide(row, late, at("3s"), half)).toEqual({ ok: false, because: "invalid_state" });
  });
});

describe("5.3 extend", () => {
  const said: Said = {
    settings: { timeouts: { attempt: "30s", total: "1h", grace: "5s", heartbeat: "20s" } },
  };

  it("a running attempt's limits are counted anew from its start", () => {
    const decision = decideOk(running(said), { type: "extend", attempt: 120_000 }, at("10s"));
    expect(decision.image).toMatchObject({ softAt: at("2m"), hardAt: at("125s"), totalAt: at("1h") });
    expect(decision.documents?.policy).toMatchObject({ attempt: 120_000, sources: { attempt: "enqueue" } });
    expect(namesOf(decision)).toEqual(["job.extended"]);
  });

  it("total is counted from creation, and none takes it away", () => {
    const row = running(said, at("1m"));
    expect(decideOk(row, { type: "extend", total: 7_200_000 }, at("70s")).image.totalAt).toBe(at("2h"));
    expect(decideOk(row, { type: "extend", total: null }, at("70s")).image.totalAt).toBeNull();
    const shorter = decideOk(row, { type: "extend", total: 80_000 }, at("70s"));
    expect([shorter.image.totalAt, shorter.image.softAt]).toEqual([at("80s"), at("80s")]);
  });

  it("a new heartbeat counts from now", () => {
    const decision = decideOk(running(said), { type: "extend", heartbeat: 90_000 }, at("10s"));
    expect(decision.image).toMatchObject({ stallAt: at("100s"), heartbeat: 90_000, softAt: at("30s") });
    // Once it is named, the handler has to keep it (3.6), also where the worker has beaten for the attempt so far.
    const named = decideOk(running(), { type: "extend", heartbeat: 5_000 }, at("10s"));
    expect([named.image.stallAt, named.image.heartbeat]).toEqual([at("15s"), 5_000]);
    expect(named.documents?.policy?.beats).toBe("handler");
    const none = decideOk(running(said), { type: "extend", heartbeat: null }, at("10s"));
    expect([none.image.stallAt, none.image.heartbeat]).toEqual([null, null]);
  });

  it("a waiting job keeps its rank and gets its new total; its first start sees the rest", () => {
    const row = enqueued({ ...said, enqueue: { delay: "1m" } });
    const decision = decideOk(row, { type: "extend", total: 300_000, attempt: 1_000 }, at("10s"));
    expect(decision.image).toMatchObject({ state: "scheduled", rank: row.rank, totalAt: at("5m") });
    expect(decision.documents?.options).toMatchObject({
      total: 300_000,
      totalFrom: "enqueue",
      settings: { timeouts: { total: 300_000, attempt: 1_000 } },
    });
  });

  it("between attempts the kept policy is changed", () => {
    const decision = decideOk(retryable(said), { type: "extend", attempt: 1_000 }, at("1s"));
    expect(decision.documents?.policy?.attempt).toBe(1_000);
  });

  it("a claim keeps its lease", () => {
    const decision = decideOk(claimed(said), { type: "extend", total: 5_000 }, at("1s"));
    expect(decision.image).toMatchObject({
      state: "active",
      stallAt: claimed(said).stallAt,
      wakeAt: at("5s"),
    });
  });

  it("what was already signalled cannot be taken back", () => {
    const timingOut = { ok: false, because: "timing_out" };
    expect(decide(running(said), { type: "extend", attempt: 99_000 }, at("30s"), half)).toEqual(timingOut);
    expect(decide(running(said), { type: "extend", attempt: 5_000 }, at("5s"), half)).toEqual(timingOut);
    expect(decide(enqueued(said), { type: "extend", total: 5_000 }, at("5s"), half)).toEqual(timingOut);
  });

  it("an extended total replaces an inherited deadline", () => {
    const parent = { id: "01890000-0000-7000-8000-0000000000ff", totalAt: at("10m") };
    const row = step(enqueued({ context: { parent } }), { type: "extend", total: 1_200_000 }, at("1s"));
    expect(row.totalAt).toBe(at("20m"));
    expect(errorOf(decideOk(row, { type: "wake" }, at("20m"))).message).toContain("20m total budget");
  });
});

describe("5.4 known ids", () => {
  it("a job says whether its id was made here; a duplicate is the store's to find", () => {
    expect(newJob()).toMatchObject({ id: ID, hasNewId: true });
    const own = "01890000-0000-4000-8000-000000000002";
    expect(newJob({ enqueue: { id: own } })).toMatchObject({ id: own, hasNewId: false });
  });
});

describe("9 retention", () => {
  const end = (said: Said, event: Parameters<typeof decideOk>[1]) => decideOk(running(said), event, at("1s"));
  const done = { type: "succeed", signalled: false } as const;
  const failed = failEvent({ final: true });

  it("completed is kept 24 h, discarded and cancelled 14 d", () => {
    expect(end({}, done).image.pruneAt).toBe(at("1s") + DAY);
    expect(end({}, failed).image.pruneAt).toBe(at("1s") + 14 * DAY);
    expect(end({}, { type: "cancel" }).image.pruneAt).toBe(at("1s") + 14 * DAY);
  });

  it("dead letters are kept until removed, whatever retention says", () => {
    const settings = { retry: { onExhausted: "dead-letter" }, retention: "0s" } as const;
    const decision = end({ settings }, failed);
    expect([decision.image.deadLetter, decision.image.pruneAt, decision.drop]).toEqual([
      true,
      null,
      undefined,
    ]);
  });

  it("retention is resolved from the sources, per state, also for a job that never started", () => {
    const said: Said = { enqueue: { retention: { completed: "1h" } }, settings: { retention: "2h" } };
    expect(end(said, done).image.pruneAt).toBe(at("1h") + 1_000);
    expect(end(said, failed).image.pruneAt).toBe(at("2h") + 1_000);
    expect(decideOk(enqueued(said), { type: "cancel" }, T0).image.pruneAt).toBe(at("2h"));
  });

  it("0s deletes in the settle itself", () => {
    expect(end({ settings: { retention: { completed: "0s" } } }, done).drop).toBe(true);
    expect(end({ settings: { retention: { completed: "0s" } } }, failed).drop).toBeUndefined();
    expect(end({}, done).drop).toBeUndefined();
  });

  it("a job somebody waits for is kept for a minute", () => {
    const row = running({ settings: { retention: "0s" } });
    const awaited = { ...row, options: { ...row.options, awaited: true as const } };
    const decision = decideOk(awaited, done, at("1s"));
    expect([decision.drop, decision.image.pruneAt]).toEqual([undefined, at("61s")]);
  });
});
