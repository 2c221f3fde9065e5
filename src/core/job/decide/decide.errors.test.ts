import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  decideOk,
  enqueued,
  errorOf,
  failEvent,
  half,
  namesOf,
  running,
  startEvent,
  step,
} from "../../../../test/support/rows.ts";
import type { JobRow } from "../job.ts";
import { decide } from "./decide.ts";

describe("3.9 the error kept on the job", () => {
  it("an attempt timeout: Timed out after 30s", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "5s" } } });
    expect(errorOf(decideOk(row, { type: "expire" }, at("35s")))).toEqual({
      type: "timeout",
      code: "timeout",
      message: "Timed out after 30s",
      kind: "execution",
      limit: 30_000,
      elapsed: 35_000,
      attempt: 1,
      at: at("35s"),
      forced: true,
    });
  });

  it("a used-up total: Timed out (deadline exceeded, 30s total budget)", () => {
    const row = enqueued({ settings: { timeouts: { total: "30s" } } });
    expect(errorOf(decideOk(row, { type: "wake" }, at("31s")))).toEqual({
      type: "total_timeout",
      code: "total_timeout",
      message: "Timed out (deadline exceeded, 30s total budget)",
      kind: "total",
      limit: 30_000,
      elapsed: 31_000,
      attempt: 0,
      at: at("31s"),
    });
  });

  it("silence: Stalled: no beat for 60s", () => {
    const decision = decideOk(running(), { type: "wake", seenAt: at("5s") }, at("70s"));
    expect(errorOf(decision)).toEqual({
      type: "stalled",
      code: "stalled",
      message: "Stalled: no beat for 60s",
      kind: "stalled",
      limit: 60_000,
      elapsed: 65_000,
      attempt: 1,
      at: at("70s"),
    });
  });

  it("a job that did not start in time says: Expired: not started within 5m", () => {
    const row = enqueued({ settings: { timeouts: { wait: "5m" } } });
    expect(errorOf(decideOk(row, { type: "wake" }, at("6m")))).toEqual({
      type: "enqueue_ttl_expired",
      code: "enqueue_ttl_expired",
      message: "Expired: not started within 5m",
      kind: "enqueue_ttl",
      limit: 300_000,
      elapsed: 360_000,
      attempt: 0,
      at: at("6m"),
    });
  });

  it("an expiresAt that came before the wait is the limit that is named", () => {
    const row = enqueued({
      settings: { timeouts: { wait: "10m" } },
      enqueue: { expiresAt: new Date(at("2m")) },
    });
    expect(errorOf(decideOk(row, { type: "wake" }, at("3m")))).toMatchObject({
      message: "Expired: not started within 2m",
      limit: 120_000,
      elapsed: 180_000,
    });
  });

  it("a named visibility timeout", () => {
    const worker = { hears: false, remote: true, visibility: 20_000 };
    expect(errorOf(decideOk(running({ worker }), { type: "wake" }, at("20s")))).toEqual({
      type: "visibility_timeout",
      code: "visibility_timeout",
      message: "Not reported within its visibility timeout of 20s",
      limit: 20_000,
      attempt: 1,
      at: at("20s"),
    });
  });

  it("a handler's error keeps its own type, code, message, stack and details", () => {
    const error = { type: "Card.Declined", code: "E42", message: "no", stack: "at x", details: { a: 1 } };
    const decision = decideOk(running(), failEvent({ error }), at("1s"));
    expect(errorOf(decision)).toEqual({ ...error, attempt: 1, at: at("1s") });
  });

  it("durations are written in the largest exact unit", () => {
    const message = (attempt: "90s" | "90m" | "2h" | "1500ms" | "1d") => {
      const row = running({ settings: { timeouts: { attempt, grace: "0s" } } });
      return errorOf(decideOk(row, { type: "expire" }, at("2d"))).message;
    };
    expect(message("90s")).toBe("Timed out after 90s");
    expect(message("90m")).toBe("Timed out after 90m");
    expect(message("2h")).toBe("Timed out after 2h");
    expect(message("1500ms")).toBe("Timed out after 1500ms");
    expect(message("1d")).toBe("Timed out after 1d");
  });

  it("the newest 20 errors are kept, in order", () => {
    let row: JobRow = running({ settings: { retry: { attempts: 30 } } });
    for (let nth = 1; nth <= 25; nth++) {
      row = step(
        { ...row, ...running(), attempt: nth, errors: row.errors, policy: row.policy },
        failEvent(),
        at("1s"),
      );
    }
    expect(row.errors?.map(({ attempt }) => attempt)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 6),
    );
  });
});

describe("3.11 never early", () => {
  const timeouts = { wait: "1m", attempt: "30s", total: "2m", grace: "5s", heartbeat: "20s" } as const;
  const said = { settings: { timeouts } } as const;

  it.each([
    ["wait", enqueued(said), at("1m")],
    ["total", enqueued({ settings: { timeouts: { total: "2m" } } }), at("2m")],
    ["scheduled start", enqueued({ enqueue: { delay: "7s" } }), at("7s")],
  ] as const)("%s: nothing happens a millisecond before", (_name, row, instant) => {
    expect(decideOk(row, { type: "wake" }, instant - 1).image).toMatchObject({
      state: row.state,
      wakeAt: instant,
    });
    expect(decideOk(row, { type: "wake" }, instant).image.state).not.toBe(row.state);
  });

  it("hardAt and stallAt: a verdict before its instant is rejected as not due", () => {
    const row = running(said);
    expect(decide(row, { type: "expire" }, at("35s") - 1, half)).toEqual({ ok: false, because: "not_due" });
    expect(decide(row, { type: "stall" }, at("20s") - 1, half)).toEqual({ ok: false, because: "not_due" });
    expect(decideOk(row, { type: "stall" }, at("20s")).image.state).toBe("retryable");
  });

  it("an attempt without a heartbeat timeout cannot stall", () => {
    const row = running({ settings: { timeouts: { heartbeat: "none" } } });
    expect(decide(row, { type: "stall" }, at("10d"), half)).toEqual({ ok: false, because: "not_due" });
  });

  it("an attempt without a hard deadline cannot expire", () => {
    const row = running({ settings: { timeouts: { grace: "unbounded" } } });
    expect(decide(row, { type: "expire" }, at("10d"), half)).toEqual({ ok: false, because: "invalid_state" });
  });

  it("the one exception is predicted: a retry that cannot fit ends the job before totalAt", () => {
    const decision = decideOk(running(said), failEvent(), at("100s"));
    expect(errorOf(decision)).toMatchObject({ kind: "total", predicted: true });
    expect(decision.image.finishedAt).toBeLessThan(at("2m"));
  });
});

describe("3.12 the order of events", () => {
  const retrying = { attempt: "30s", grace: "0s", heartbeat: "20s" } as const;
  const once = { attempts: 1 } as const;

  it.each([
    ["job.timeout", { type: "expire" }, at("30s")],
    ["job.stalled", { type: "stall" }, at("20s")],
  ] as const)("%s, then job.failed, then job.retrying or job.discarded", (first, event, now) => {
    const again = decideOk(running({ settings: { timeouts: retrying } }), event, now);
    expect(namesOf(again)).toEqual([first, "job.failed", "job.retrying"]);
    const over = decideOk(running({ settings: { timeouts: retrying, retry: once } }), event, now);
    expect(namesOf(over)).toEqual([first, "job.failed", "job.discarded"]);
  });

  it("an ordinary failure begins with job.failed", () => {
    expect(namesOf(decideOk(running(), failEvent(), at("1s")))).toEqual(["job.failed", "job.retrying"]);
    const over = decideOk(running({ settings: { retry: once } }), failEvent(), at("1s"));
    expect(namesOf(over)).toEqual(["job.failed", "job.discarded"]);
  });

  it("job.retrying says when, and job.discarded why", () => {
    const again = decideOk(running(), failEvent(), at("1s"));
    expect(again.events.at(-1)).toMatchObject({ name: "job.retrying", dueAt: at("2s") });
    const over = decideOk(running({ settings: { retry: once } }), failEvent(), at("1s"));
    expect(over.events.at(-1)).toMatchObject({ name: "job.discarded", error: { message: "no" } });
  });

  it("a start and a cancel record one event each", () => {
    expect(namesOf(decideOk(claimed(), startEvent(), at("1s")))).toEqual(["job.started"]);
    expect(namesOf(decideOk(running(), { type: "cancel" }, at("1s")))).toEqual(["job.cancelled"]);
  });
});
