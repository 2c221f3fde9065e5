import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  DAY,
  decideOk,
  enqueued,
  errorOf,
  failEvent,
  MINUTE,
  namesOf,
  policyOf,
  running,
  SECOND,
  step,
  T0,
} from "../../../../test/support/rows.ts";
import { LOCAL_WORKER, resolvePolicy } from "../policy/policy.ts";

describe("1 the five timeouts", () => {
  it("wait is counted from creation until the first start and ends in discarded", () => {
    const row = enqueued({ settings: { timeouts: { wait: "5m" } } });
    expect(row.waitAt).toBe(at("5m"));
    const decision = decideOk(row, { type: "wake" }, at("5m"));
    expect(decision.image.state).toBe("discarded");
    expect(errorOf(decision)).toMatchObject({ type: "enqueue_ttl_expired", kind: "enqueue_ttl" });
    expect(namesOf(decision)).toEqual(["job.ttl_expired", "job.expired", "job.discarded"]);
  });

  it("silence counts until the sweep has read the row, because later beats change no revision", () => {
    const row = running({ settings: { timeouts: { heartbeat: "10s" } } });
    const wake = (readAt: number) => decideOk(row, { type: "wake", readAt }, at("15s"));
    expect(wake(at("9s")).image.state).toBe("active");
    expect(namesOf(wake(at("12s")))).toContain("job.stalled");
    const held = claimed();
    const look = (readAt: number) => decideOk(held, { type: "wake", readAt }, at("1h"));
    expect(look((held.stallAt as number) - 1).image.state).toBe("active");
    expect(look(held.stallAt as number).image).toMatchObject({ state: "available", expiredClaims: 1 });
  });

  it("wait is over with the first start and does not come back for a retry", () => {
    const row = running({ settings: { timeouts: { wait: "5m" } } });
    expect(row.waitAt).toBeNull();
    expect(step(row, failEvent(), at("1s")).waitAt).toBeNull();
  });

  it("expiresAt is the wait limit as an instant, and the earlier of the two wins", () => {
    const settings = { timeouts: { wait: "5m" } } as const;
    expect(enqueued({ settings, enqueue: { expiresAt: new Date(at("2m")) } }).waitAt).toBe(at("2m"));
    expect(enqueued({ settings, enqueue: { expiresAt: new Date(at("9m")) } }).waitAt).toBe(at("5m"));
    expect(enqueued({ enqueue: { expiresAt: new Date(at("9m")) } }).waitAt).toBe(at("9m"));
  });

  it("attempt is counted from the start of each attempt", () => {
    const said = { settings: { timeouts: { attempt: "30s" } } } as const;
    expect(running(said).softAt).toBe(at("30s"));
    expect(running(said, at("7s")).softAt).toBe(at("37s"));
  });

  it("total is counted from creation, through queue time, attempts and backoff", () => {
    const said = { settings: { timeouts: { total: "1h", attempt: "none" } } } as const;
    const first = running(said, at("10m"));
    expect([first.totalAt, first.softAt]).toEqual([at("1h"), at("1h")]);
    const waiting = step(first, failEvent(), at("20m"));
    expect(waiting.totalAt).toBe(at("1h"));
    const over = decideOk(waiting, { type: "wake" }, at("1h"));
    expect(over.image.state).toBe("discarded");
    expect(errorOf(over).type).toBe("total_timeout");
    expect(namesOf(over)).toEqual(["job.total_timeout", "job.discarded"]);
  });

  it("grace is counted from the soft signal", () => {
    expect(running({ settings: { timeouts: { attempt: "30s", grace: "5s" } } }).hardAt).toBe(at("35s"));
  });

  it("heartbeat ends in stalled and leaves the rest to the retry policy", () => {
    const decision = decideOk(
      running({ settings: { timeouts: { heartbeat: "20s" } } }),
      { type: "stall" },
      at("20s"),
    );
    expect(decision.image.state).toBe("retryable");
    expect(namesOf(decision)).toEqual(["job.stalled", "job.failed", "job.retrying"]);
  });

  it("the built-in limits are 30 min, 30 s and 60 s, without wait and total", () => {
    const policy = resolvePolicy({}, LOCAL_WORKER);
    expect([policy.attempt, policy.grace, policy.heartbeat]).toEqual([30 * MINUTE, 30 * SECOND, MINUTE]);
    const row = enqueued();
    expect([row.waitAt, row.totalAt, row.wakeAt]).toEqual([null, null, null]);
  });
});

describe("1 the mode", () => {
  const timeouts = { attempt: "30s", grace: "5s", total: "1h" } as const;

  it("mode fail, the default, makes a failed attempt of an attempt timeout", () => {
    expect(policyOf().mode).toBe("fail");
    const decision = decideOk(running({ settings: { timeouts } }), { type: "expire" }, at("35s"));
    expect(decision.image.state).toBe("retryable");
  });

  it("mode discard abandons: discarded, never retried, never dead-lettered", () => {
    const settings = {
      timeouts: { ...timeouts, mode: "discard" },
      retry: { onExhausted: "dead-letter" },
    } as const;
    const decision = decideOk(running({ settings }), { type: "expire" }, at("35s"));
    expect(decision.image).toMatchObject({ state: "discarded", deadLetter: false });
    expect(namesOf(decision)).toEqual(["job.timeout", "job.failed", "job.discarded"]);
  });

  it("mode discard touches neither total nor stalls", () => {
    const retry = { onExhausted: "dead-letter" } as const;
    const byTotal = running({ settings: { timeouts: { total: "10s", mode: "discard" }, retry } });
    expect(decideOk(byTotal, { type: "expire" }, at("40s")).image).toMatchObject({ deadLetter: true });
    const silent = running({ settings: { timeouts: { heartbeat: "10s", mode: "discard" }, retry } });
    expect(decideOk(silent, { type: "stall" }, at("10s")).image.state).toBe("retryable");
  });

  it("mode discard leaves an ordinary failure to the retry policy", () => {
    const row = running({ settings: { timeouts: { ...timeouts, mode: "discard" } } });
    expect(decideOk(row, failEvent(), at("1s")).image.state).toBe("retryable");
  });
});

describe("1.1 none and unbounded", () => {
  it("none switches attempt and heartbeat off", () => {
    const row = running({ settings: { timeouts: { attempt: "none", heartbeat: "none" } } });
    expect([row.softAt, row.hardAt, row.stallAt, row.wakeAt]).toEqual([null, null, null, null]);
  });

  it("none stops the fall-through", () => {
    const engineSettings = { timeouts: { wait: 1_000, total: 1_000 } };
    const said = {
      settings: { timeouts: { wait: "none", total: "none" } },
      context: { engineSettings },
    } as const;
    expect([enqueued(said).waitAt, enqueued(said).totalAt]).toEqual([null, null]);
    const inherited = enqueued({ context: { engineSettings: engineSettings } });
    expect([inherited.waitAt, inherited.totalAt]).toEqual([at("1s"), at("1s")]);
  });

  it("grace alone may be 0s: the hard deadline is the soft one", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "0s" } } });
    expect(row.hardAt).toBe(row.softAt);
  });
});

describe("1.2 total and attempt", () => {
  it("a built-in or inherited attempt that is longer is cut to the total", () => {
    const builtIn = running({ settings: { timeouts: { total: "1m" } } });
    expect(builtIn.softAt).toBe(at("1m"));
    const inherited = running({
      enqueue: { timeouts: { total: "1m" } },
      settings: { timeouts: { attempt: "2h" } },
    });
    expect(inherited.softAt).toBe(at("1m"));
  });
});

describe("1.3 long delays", () => {
  it("limits beyond 2^31 ms are kept as instants, to the millisecond", () => {
    const said = { settings: { timeouts: { wait: "40d", attempt: "100d", total: "3650d" } } } as const;
    expect(40 * DAY).toBeGreaterThan(2 ** 31);
    const row = enqueued({ ...said, enqueue: { delay: "30d" } });
    expect([row.state, row.wakeAt, row.waitAt]).toEqual(["scheduled", T0 + 30 * DAY, T0 + 40 * DAY]);
    expect(decideOk(row, { type: "wake" }, T0 + 30 * DAY - 1).image.state).toBe("scheduled");
    expect(decideOk(row, { type: "wake" }, T0 + 30 * DAY).image.state).toBe("available");
    expect(running(said).softAt).toBe(T0 + 100 * DAY);
    expect(running(said).totalAt).toBe(T0 + 3_650 * DAY);
  });
});

describe("1.4 grace by worker", () => {
  const foreign = { hears: false, remote: true };

  it("workers of ours hear the signal and get the built-in 30 s, local or remote", () => {
    expect(policyOf().grace).toBe(30 * SECOND);
    expect(policyOf({}, { hears: true, remote: true }).grace).toBe(30 * SECOND);
  });

  it("a foreign worker's job is taken back at the timeout itself when no settings names a grace", () => {
    const row = running({ settings: { timeouts: { attempt: "30s" } }, worker: foreign });
    expect([row.softAt, row.hardAt, row.wakeAt]).toEqual([at("30s"), at("30s"), at("30s")]);
    expect(decideOk(row, { type: "wake" }, at("30s") - 1).image.state).toBe("active");
    expect(decideOk(row, { type: "wake" }, at("30s")).image.state).toBe("retryable");
  });

  it("a foreign worker's job is taken back at timeout plus grace when a settings names one", () => {
    const row = running({ settings: { timeouts: { attempt: "30s", grace: "5s" } }, worker: foreign });
    expect(decideOk(row, { type: "wake" }, at("35s") - 1).image.state).toBe("active");
    expect(decideOk(row, { type: "wake" }, at("35s")).image.state).toBe("retryable");
  });
});

describe("1.5 unbounded grace", () => {
  const row = running({ settings: { timeouts: { attempt: "30s", grace: "unbounded" } } });

  it("the signal is given and there is no hard deadline", () => {
    expect([row.softAt, row.hardAt]).toEqual([at("30s"), null]);
    const late = decideOk(row, { type: "succeed", signalled: true }, at("10d"));
    expect(late.image.state).toBe("completed");
  });

  it("stall, cancel and shutdown still end the attempt", () => {
    expect(decideOk(row, { type: "wake", seenAt: at("40s") }, at("100s")).image.state).toBe("retryable");
    expect(decideOk(row, { type: "cancel" }, at("40s")).image.state).toBe("cancelled");
    expect(decideOk(row, { type: "release" }, at("40s")).image.state).toBe("available");
  });

  it("a claim of such a job is not started by it", () => {
    const unstarted = claimed({ settings: { timeouts: { grace: "unbounded" } } });
    expect([unstarted.softAt, unstarted.hardAt]).toEqual([null, null]);
  });
});
