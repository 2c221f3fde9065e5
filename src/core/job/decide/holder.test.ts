import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  decideOk,
  enqueued,
  running,
  type Said,
  startEvent,
  step,
} from "../../../../test/support/rows.ts";
import type { JobRow } from "../job.ts";
import {
  ANONYMOUS,
  beatenUntil,
  directiveFor,
  isCounted,
  isHolder,
  isSignalled,
  isTooLate,
} from "./holder.ts";

const FOREIGN = { remote: true, hears: false, worker: "w-1" } as const;
const HEARING = { ...FOREIGN, hears: true } as const;

/** A job that a remote worker fetched at T0. */
function fetched(said: Said = {}): JobRow {
  return running({ worker: FOREIGN, ...said });
}

describe("3.8 who may report on an attempt", () => {
  it("the fence decides where it is given, whatever the worker's name is", () => {
    const row = fetched();
    expect(isHolder(row, { fence: row.fence, worker: "another" })).toBe(true);
    expect(isHolder(row, { fence: row.fence - 1, worker: "w-1" })).toBe(false);
  });

  it("without a fence the worker's name decides", () => {
    expect(isHolder(fetched(), { worker: "w-1" })).toBe(true);
    expect(isHolder(fetched(), { worker: "w-2" })).toBe(false);
  });

  it("a report that says nothing about its sender counts, and so does any on an anonymous fetch", () => {
    expect(isHolder(fetched(), {})).toBe(true);
    const anonymous = fetched({ worker: { ...FOREIGN, worker: ANONYMOUS } });
    expect(isHolder(anonymous, { worker: "w-9" })).toBe(true);
  });

  it("nobody holds a job that waits, is only claimed, or has ended", () => {
    const row = fetched();
    const ended = step(row, { type: "succeed", signalled: false }, at("1s"));
    for (const job of [enqueued(), claimed(), ended]) {
      expect(isHolder(job, {})).toBe(false);
      expect(isHolder(job, { fence: job.fence })).toBe(false);
    }
  });

  it("an attempt of an engine's own worker is reported on only under its fence", () => {
    const row = running();
    expect([isHolder(row, {}), isHolder(row, { worker: row.worker ?? "" })]).toEqual([false, false]);
    expect(isHolder(row, { fence: row.fence })).toBe(true);
  });

  it("the next worker's attempt is its own: the first one's name no longer counts", () => {
    const failed = step(fetched(), { type: "fail", error: ERROR, signalled: false }, at("1s"));
    const due = step(failed, { type: "wake" }, at("1h"));
    const again = step(due, { type: "claim", lease: 10_000, salt: 7 }, at("1h"));
    const start = startEvent({ worker: { ...FOREIGN, worker: "w-2" } }, at("1h"));
    const second = step(again, { ...start, kind: { ...FOREIGN, worker: "w-2" } }, at("1h"));
    expect([isHolder(second, { worker: "w-1" }), isHolder(second, { worker: "w-2" })]).toEqual([false, true]);
  });
});

const ERROR = { type: "Oops", code: "oops", message: "oops" };

describe("a report that is sent again", () => {
  it("counts as the one that was counted, under the same fence and for the same end", () => {
    const row = fetched();
    const sender = { fence: row.fence };
    const done = step(row, { type: "succeed", signalled: false }, at("1s"));
    const failed = step(row, { type: "fail", error: ERROR, signalled: false }, at("1s"));
    const back = step(row, { type: "release" }, at("1s"));
    expect([isCounted(done, sender, "succeed"), isCounted(done, sender, "fail")]).toEqual([true, false]);
    expect([isCounted(failed, sender, "fail"), isCounted(failed, sender, "succeed")]).toEqual([true, false]);
    expect(isCounted(back, sender, "release")).toBe(true);
    expect(isCounted(done, {}, "succeed")).toBe(false);
  });

  it("does not where somebody else ended the attempt, or it still runs", () => {
    const row = fetched();
    const sender = { fence: row.fence };
    const cancelled = step(row, { type: "cancel" }, at("1s"));
    const stalled = step(row, { type: "wake" }, at("60s"));
    for (const job of [row, cancelled, stalled]) {
      expect([isCounted(job, sender, "succeed"), isCounted(job, sender, "fail")]).toEqual([false, false]);
    }
  });
});

describe("3.3 reports around the deadlines (3.4, 3.5, 3.11)", () => {
  const limits = { timeouts: { attempt: "10s", grace: "5s" } } as const;

  it("nothing is signalled before softAt, whatever the worker says", () => {
    const row = fetched({ worker: HEARING, settings: limits });
    expect(isSignalled(row, at("9s"), true)).toBe(false);
    expect(isSignalled(row, at("10s"))).toBe(true);
  });

  it("a worker that hears its signal knows whether its report came before it; another does not", () => {
    expect(isSignalled(fetched({ worker: HEARING, settings: limits }), at("10s"), false)).toBe(false);
    expect(isSignalled(fetched({ settings: limits }), at("10s"), false)).toBe(true);
  });

  it("a report at the hard deadline is too late; without one it never is", () => {
    const row = fetched({ settings: limits });
    expect([isTooLate(row, at("14s")), isTooLate(row, at("15s"))]).toEqual([false, true]);
    expect(isTooLate(fetched({ settings: { timeouts: { attempt: "none" } } }), at("100d"))).toBe(false);
  });
});

describe("directives of a beat", () => {
  const limits = { timeouts: { attempt: "10s", grace: "5s" } } as const;

  it("goes on, hears its soft signal, and is lost after the hard deadline", () => {
    const row = fetched({ settings: limits });
    const by = (now: number) => directiveFor(row, { worker: "w-1" }, now);
    expect([by(at("9s")), by(at("10s")), by(at("15s"))]).toEqual(["continue", "soft_timeout", "lost"]);
  });

  it("tells a cancelled job from one that is lost or gone", () => {
    const row = fetched();
    const cancelled = step(row, { type: "cancel" }, at("1s"));
    expect(directiveFor(cancelled, { worker: "w-1" }, at("2s"))).toBe("cancel");
    expect(directiveFor(row, { worker: "w-2" }, at("2s"))).toBe("lost");
    expect(directiveFor(null, {}, at("2s"))).toBe("lost");
  });
});

describe("3.6 how far a beat reaches", () => {
  it("moves the end of the silence by the heartbeat or the visibility timeout", () => {
    expect(beatenUntil(fetched(), at("30s"))).toBe(at("120s"));
    expect(beatenUntil(fetched({ worker: { ...FOREIGN, visibility: 3_000 } }), at("2s"))).toBe(at("5s"));
  });

  it("a visibility timeout named by the beat stands in for the old one, within a named heartbeat", () => {
    expect(beatenUntil(fetched({ worker: { ...FOREIGN, visibility: 3_000 } }), at("1s"), 10_000)).toBe(
      at("11s"),
    );
    const named = fetched({ settings: { timeouts: { heartbeat: "20s" } } });
    expect(beatenUntil(named, at("5s"), 100_000)).toBe(at("25s"));
  });

  it("a beat only extends the silence, and changes nothing where silence has no limit", () => {
    expect(beatenUntil(fetched(), at("0s"), 1)).toBe(at("90s"));
    expect(beatenUntil(fetched({ settings: { timeouts: { heartbeat: "none" } } }), at("1s"))).toBeNull();
  });
});

describe("what a reporter may ask of the retry policy", () => {
  const fail = (more: object) => ({ type: "fail", error: ERROR, signalled: false, ...more }) as const;

  it("a dead letter is one whatever the policy says, at once", () => {
    const { image } = decideOk(fetched(), fail({ deadLetter: true }), at("1s"));
    expect([image.state, image.deadLetter]).toEqual(["discarded", true]);
  });

  it("insisting retries an excepted error, but not beyond the attempts", () => {
    const row = fetched({ settings: { retry: { attempts: 2, except: ["Oops"] } } });
    expect(decideOk(row, fail({}), at("1s")).image.state).toBe("discarded");
    expect(decideOk(row, fail({ insist: true }), at("1s")).image.state).toBe("retryable");
    expect(decideOk({ ...row, attempt: 2 }, fail({ insist: true }), at("1s")).image.state).toBe("discarded");
  });
});
