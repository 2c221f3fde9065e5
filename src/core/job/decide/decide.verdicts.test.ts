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
  type Said,
  startEvent,
  step,
  T0,
} from "../../../../test/support/rows.ts";
import { CLAIM_LEASE } from "../policy/deadlines.ts";
import { decide } from "./decide.ts";

describe("3.1 before a handler is entered", () => {
  const said = { settings: { timeouts: { wait: "5s", total: "8s" } } } as const;

  it("cancelled is looked at first: nothing of it can start", () => {
    const row = step(claimed(said), { type: "cancel" }, at("1s"));
    expect(decide(row, startEvent(said), at("9s"), half)).toEqual({ ok: false, because: "invalid_state" });
    expect(row.state).toBe("cancelled");
  });

  it("total is looked at before wait", () => {
    const both = decideOk(claimed(said), startEvent(said, at("9s")), at("9s"));
    expect(errorOf(both).type).toBe("total_timeout");
    const waitOnly = decideOk(claimed(said), startEvent(said, at("6s")), at("6s"));
    expect(errorOf(waitOnly).type).toBe("enqueue_ttl_expired");
  });

  it("a handler is never entered past a deadline, nor at its very instant", () => {
    expect(decideOk(claimed(said), startEvent(said, at("5s") - 1), at("5s") - 1).image.state).toBe("active");
    expect(decideOk(claimed(said), startEvent(said, at("5s")), at("5s")).image.state).toBe("discarded");
  });

  it("what has ended by the lower clock is discarded, what may have by the upper is asked again", () => {
    const now = at("4s");
    const near = { ...startEvent(said), upper: at("5s") };
    expect(decide(claimed(said), near, now, half)).toEqual({ ok: false, because: "too_close" });
    expect(decide(claimed(said), { ...near, upper: at("5s") - 1 }, now, half).ok).toBe(true);
    const total = { settings: { timeouts: { total: "5s" } } } as const;
    const entry = { ...startEvent(total), upper: at("5s") };
    expect(decide(claimed(total), entry, now, half)).toEqual({ ok: false, because: "too_close" });
  });

  it("a holder does not enter a handler when its lease may be over", () => {
    const entry = { ...startEvent(), upper: T0 + CLAIM_LEASE };
    expect(decide(claimed(), entry, at("9s"), half)).toEqual({ ok: false, because: "lease_over" });
    expect(decide(claimed(), { ...entry, upper: entry.upper - 1 }, at("9s"), half).ok).toBe(true);
  });

  it("a claim is a lease, not a start: no attempt or heartbeat clock runs, wait and total run on", () => {
    const row = claimed(said);
    expect(row).toMatchObject({ attempt: 0, startedAt: null, softAt: null, hardAt: null });
    expect([row.waitAt, row.totalAt, row.wakeAt]).toEqual([at("5s"), at("8s"), at("5s")]);
    // Its holder may have entered it in time, so the sweep leaves it a second for the word of its start.
    expect(decideOk(row, { type: "wake" }, at("5s")).image).toMatchObject({
      state: "active",
      wakeAt: at("6s"),
    });
    expect(decideOk(row, { type: "wake" }, at("6s")).image.state).toBe("discarded");
  });

  it("a claim holds for its lease, or for a named heartbeat where that is shorter", () => {
    expect(claimed().stallAt).toBe(T0 + CLAIM_LEASE);
    expect(claimed({ settings: { timeouts: { heartbeat: "2s" } } }).stallAt).toBe(at("2s"));
    expect(claimed({ settings: { timeouts: { heartbeat: "2m" } } }).stallAt).toBe(T0 + CLAIM_LEASE);
  });

  it("a claim can be handed back unspent", () => {
    const before = enqueued(said);
    const { fence, rev, ...given } = step(claimed(said), { type: "release" }, at("1s"));
    expect({ ...given, fence: before.fence, rev: before.rev }).toEqual(before);
    expect([fence > before.fence, rev]).toEqual([true, 2]);
  });

  it("a handler is entered once", () => {
    expect(decide(running(), startEvent(), at("1s"), half)).toEqual({ ok: false, because: "invalid_state" });
  });
});

describe("3.2 the instants of an attempt", () => {
  it("softAt is the earlier of start + attempt and totalAt; hardAt follows by grace", () => {
    const timeouts = { attempt: "30s", total: "1m", grace: "5s" } as const;
    const early = running({ settings: { timeouts } });
    expect([early.softAt, early.hardAt]).toEqual([at("30s"), at("35s")]);
    const late = running({ settings: { timeouts } }, at("40s"));
    expect([late.softAt, late.hardAt]).toEqual([at("60s"), at("65s")]);
  });

  it("stallAt is the last beat + heartbeat, the start at first", () => {
    expect(running({ settings: { timeouts: { heartbeat: "20s" } } }, at("3s")).stallAt).toBe(at("23s"));
    const beaten = running();
    expect(decideOk(beaten, { type: "wake", seenAt: at("50s") }, at("109s")).image.state).toBe("active");
    expect(decideOk(beaten, { type: "wake", seenAt: at("50s") }, at("110s")).image.state).toBe("retryable");
    expect(decideOk(beaten, { type: "wake", seenAt: null }, at("60s")).image.state).toBe("retryable");
  });

  it("timing out is derived, not a stored state", () => {
    const row = running({ settings: { timeouts: { attempt: "30s" } } });
    expect(decideOk(row, { type: "wake", seenAt: at("40s") }, at("40s")).image.state).toBe("active");
  });
});

describe("3.3 the first cause is the verdict", () => {
  it("at one instant total goes before execution", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", total: "30s", grace: "0s" } } });
    const decision = decideOk(row, { type: "expire" }, at("30s"));
    expect(errorOf(decision).kind).toBe("total");
    expect(namesOf(decision)).toEqual(["job.total_timeout", "job.failed", "job.discarded"]);
  });

  it("at one instant total goes before stalled", () => {
    const row = running({ settings: { timeouts: { total: "30s", heartbeat: "30s" } } });
    expect(errorOf(decideOk(row, { type: "stall" }, at("30s"))).kind).toBe("total");
  });

  it("at one instant stalled goes before execution", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", heartbeat: "30s" } } });
    expect(errorOf(decideOk(row, { type: "stall" }, at("30s"))).kind).toBe("stalled");
  });

  it("cancelled and shutdown go before every timeout of the same instant", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", total: "30s", grace: "5s" } } });
    expect(decideOk(row, { type: "cancel" }, at("30s")).image.state).toBe("cancelled");
    expect(decideOk(row, { type: "release" }, at("30s")).image.state).toBe("available");
  });

  it("a release at or after the hard deadline comes too late: the verdict was due", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "5s" } } });
    expect(decideOk(row, { type: "release" }, at("34999ms")).image.state).toBe("available");
    for (const late of ["35s", "40s"] as const) {
      const decision = decideOk(row, { type: "release" }, at(late));
      expect(decision.image).toMatchObject({ state: "retryable", attempt: 1, returns: 0 });
      expect(errorOf(decision)).toMatchObject({ type: "timeout", forced: true });
    }
    const total = running({ settings: { timeouts: { total: "30s", grace: "0s" } } });
    expect(decideOk(total, { type: "release" }, at("30s")).image.state).toBe("discarded");
  });

  it("the cause is fixed at the soft signal: a later failure, stall or death is that timeout", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "50s", heartbeat: "40s" } } });
    const failed = decideOk(row, failEvent({ signalled: true }), at("35s"));
    const stalled = decideOk(row, { type: "stall" }, at("40s"));
    const died = decideOk(row, { type: "wake", seenAt: at("0s") }, at("41s"));
    for (const decision of [failed, stalled, died]) {
      expect(errorOf(decision)).toMatchObject({ type: "timeout", kind: "execution" });
      expect(namesOf(decision)[0]).toBe("job.timeout");
    }
  });

  it("a stall before the soft signal stays one, however late the sweep comes", () => {
    const settings = { timeouts: { attempt: "5m", mode: "discard" } } as const;
    const decision = decideOk(running({ settings }), { type: "wake", seenAt: at("1s") }, at("2h"));
    expect(errorOf(decision).kind).toBe("stalled");
    expect(decision.image.state).toBe("retryable");
    const alive = decideOk(running({ settings }), { type: "wake", seenAt: at("5m") }, at("2h"));
    expect(errorOf(alive)).toMatchObject({ kind: "execution", forced: true });
  });

  it("if totalAt passes during grace, the retry stage ends the job", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", total: "40s", grace: "20s" } } });
    expect([row.softAt, row.totalAt, row.hardAt]).toEqual([at("30s"), at("40s"), at("50s")]);
    const decision = decideOk(row, { type: "expire" }, at("50s"));
    expect(decision.image.state).toBe("discarded");
    const [attempt, total] = decision.documents?.errors ?? [];
    expect([attempt?.kind, total?.kind, total?.predicted]).toEqual(["execution", "total", undefined]);
  });

  it("a failure at or after the hard deadline comes after the verdict: it is the timeout", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "5s", mode: "discard" } } });
    expect(errorOf(decideOk(row, failEvent(), at("35s") - 1)).type).toBe("Error");
    const late = decideOk(row, failEvent(), at("35s"));
    expect(errorOf(late)).toMatchObject({ type: "timeout", cause: { type: "Error", message: "no" } });
    expect(late.image.state).toBe("discarded");
  });
});

describe("3.4 success after the signal", () => {
  const said: Said = { settings: { timeouts: { attempt: "30s", grace: "5s" } } };

  it("late success is completed, marked late, and emits only job.completed", () => {
    const decision = decideOk(running(said), { type: "succeed", result: '"r"', signalled: true }, at("34s"));
    expect(decision.image.state).toBe("completed");
    expect(decision.events).toEqual([{ name: "job.completed", late: true }]);
    expect(decision.documents).toEqual({ result: '"r"' });
  });

  it("success in time is not marked", () => {
    const decision = decideOk(running(said), { type: "succeed", signalled: false }, at("29s"));
    expect(decision.events).toEqual([{ name: "job.completed" }]);
  });

  it("with unbounded grace a success counts whenever it comes", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "unbounded" } } });
    const decision = decideOk(row, { type: "succeed", signalled: true }, at("3650d"));
    expect(decision.events).toEqual([{ name: "job.completed", late: true }]);
  });

  it("after hardAt a result is refused: the timeout is the verdict", () => {
    const decision = decideOk(running(said), { type: "succeed", result: "1", signalled: true }, at("35s"));
    expect(decision.image.state).toBe("retryable");
    expect(decision.documents?.result).toBeUndefined();
    expect(errorOf(decision)).toMatchObject({ type: "timeout", forced: true });
  });

  it("after hardAt a snooze is refused likewise and gives no attempt back", () => {
    const decision = decideOk(running(said), { type: "snooze", dueAt: at("1h") }, at("35s"));
    expect(decision.image).toMatchObject({ state: "retryable", attempt: 1, returns: 0 });
    expect(errorOf(decision).type).toBe("timeout");
  });
});

describe("3.5 classification by our signal", () => {
  const row = running({ settings: { timeouts: { attempt: "30s", grace: "5s" } } });
  const error = { type: "TypeError", code: "E_OWN", message: "boom", stack: "at x" };

  it("any error after our abort is a timeout with the thrown error as cause", () => {
    const decision = decideOk(row, failEvent({ error, signalled: true }), at("31s"));
    expect(errorOf(decision)).toMatchObject({ type: "timeout", code: "timeout", cause: error });
  });

  it("Discard thrown after our abort is that timeout too, and ends the job", () => {
    const decision = decideOk(row, failEvent({ error, signalled: true, discard: true }), at("31s"));
    expect(decision.image).toMatchObject({ state: "discarded", deadLetter: false });
    expect(errorOf(decision)).toMatchObject({ type: "timeout", cause: error });
  });

  it("a snooze after our abort is that timeout too, and spends the attempt", () => {
    const decision = decideOk(row, { type: "snooze", dueAt: at("1h"), signalled: true }, at("31s"));
    expect(decision.image).toMatchObject({ state: "retryable", attempt: 1, returns: 0 });
    expect(errorOf(decision)).toMatchObject({ type: "timeout", cause: { type: "snooze" } });
  });

  it.each(["AbortError", "TimeoutError"])("a handler's own earlier %s is an ordinary failure", (type) => {
    const decision = decideOk(row, failEvent({ error: { ...error, type } }), at("31s"));
    expect(errorOf(decision)).toEqual({ ...error, type, attempt: 1, at: at("31s") });
    expect(namesOf(decision)).toEqual(["job.failed", "job.retrying"]);
  });
});

describe("3.7 who decides at the hard deadline", () => {
  const row = running({ settings: { timeouts: { attempt: "30s", grace: "5s" } } });

  it("the worker decides at hardAt", () => {
    expect(decide(row, { type: "expire" }, at("35s") - 1, half)).toEqual({ ok: false, because: "not_due" });
    expect(errorOf(decideOk(row, { type: "expire" }, at("35s")))).toMatchObject({
      type: "timeout",
      forced: true,
    });
  });

  it("the sweep acts a second later if the worker still beats and has not", () => {
    const beating = { type: "wake", seenAt: at("35s") } as const;
    expect(row.wakeAt).toBe(at("36s"));
    expect(decideOk(row, beating, at("36s") - 1).image).toMatchObject({ state: "active", wakeAt: at("36s") });
    const decision = decideOk(row, beating, at("36s"));
    expect(decision.image.state).toBe("retryable");
    expect(errorOf(decision)).toMatchObject({ type: "timeout", forced: true });
  });

  it("the sweep's verdict voids the fence, so what the worker still writes is lost", () => {
    const decision = decideOk(row, { type: "wake", seenAt: at("35s") }, at("36s"));
    expect(decision.fence).toBeGreaterThan(row.fence);
  });

  it("where the stack was captured, it is on the error", () => {
    const decision = decideOk(row, { type: "expire", stack: "at loop" }, at("35s"));
    expect(errorOf(decision).stack).toBe("at loop");
  });
});

describe("3.8 the fence", () => {
  it("the fence grows with each claim, whatever the salt", () => {
    let row = enqueued();
    const fences = [row.fence];
    for (const salt of [2 ** 21 - 1, 0, 5, 0, 2 ** 21 - 1]) {
      row = step(row, { type: "claim", lease: 1_000, salt }, T0);
      fences.push(row.fence);
      row = step(row, { type: "release" }, T0);
    }
    expect(fences).toEqual([...fences].sort((a, b) => a - b));
    expect(new Set(fences).size).toBe(fences.length);
  });

  it("stays exact over every claim a job can have", () => {
    const last = { ...enqueued(), fence: 2 ** 52 };
    const next = step(last, { type: "claim", lease: 1_000, salt: 1 }, T0);
    expect(Number.isSafeInteger(next.fence)).toBe(true);
    expect(next.fence).toBeGreaterThan(last.fence);
  });

  it("an outsider that ends an attempt voids its fence", () => {
    const row = running();
    const cancelled = decideOk(row, { type: "cancel" }, at("1s"));
    const stalled = decideOk(row, { type: "wake", seenAt: null }, at("1h"));
    const expired = decideOk(claimed(), { type: "wake" }, at("10s"));
    for (const { fence } of [cancelled, stalled, expired]) expect(fence).toBeGreaterThan(row.fence);
  });

  it("the attempt's own verdict keeps it", () => {
    expect(decideOk(running(), { type: "succeed", signalled: false }, at("1s")).fence).toBeUndefined();
    expect(decideOk(running(), failEvent(), at("1s")).fence).toBeUndefined();
  });
});
