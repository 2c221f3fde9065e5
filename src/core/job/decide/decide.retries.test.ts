import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  decideOk,
  enqueued,
  errorOf,
  failEvent,
  namesOf,
  running,
  type Said,
  startEvent,
  step,
} from "../../../../test/support/rows.ts";
import type { JobRow } from "../job.ts";
import { constant, delays } from "../policy/retry.ts";
import { MOST_RETURNS } from "./decide.ts";

const RECLAIM = { type: "claim", lease: 10_000, salt: 3 } as const;

describe("4.1 the retry policy", () => {
  it("attempts count the first one too", () => {
    const second = (row: JobRow) => ({ ...row, attempt: 2 });
    const row = running({ settings: { retry: { attempts: 2 } } });
    expect(decideOk(row, failEvent(), at("1s")).image.state).toBe("retryable");
    expect(decideOk(second(row), failEvent(), at("1s")).image.state).toBe("discarded");
  });

  it("the defaults are 3 attempts, exponential from 1 s", () => {
    const row = running();
    const dueAfter = (attempt: number) =>
      (decideOk({ ...row, attempt }, failEvent(), at("1s")).image.wakeAt ?? 0) - at("1s");
    expect([dueAfter(1), dueAfter(2)]).toEqual([1_000, 2_000]);
    expect(decideOk({ ...row, attempt: 3 }, failEvent(), at("1s")).image.state).toBe("discarded");
  });

  it("timeouts and stalls are retryable unless except names them", () => {
    const timeouts = { attempt: "30s", grace: "0s", heartbeat: "20s" } as const;
    const late = { type: "expire" } as const;
    const silent = { type: "stall" } as const;
    const verdict = (except: string[], event: typeof late | typeof silent) =>
      decideOk(running({ settings: { timeouts, retry: { except } } }), event, at("30s")).image.state;
    expect([verdict([], late), verdict([], silent)]).toEqual(["retryable", "retryable"]);
    expect([verdict(["timeout"], late), verdict(["timeout"], silent)]).toEqual(["discarded", "retryable"]);
    expect([verdict(["stalled"], late), verdict(["stalled"], silent)]).toEqual(["retryable", "discarded"]);
  });

  it("except matches the type exactly, or by Prefix.*", () => {
    const verdict = (type: string) =>
      decideOk(
        running({ settings: { retry: { except: ["Fatal", "Card.*"] } } }),
        failEvent({ error: { type, code: "handler_error", message: "no" } }),
        at("1s"),
      ).image.state;
    expect(["Fatal", "Card.Declined"].map(verdict)).toEqual(["discarded", "discarded"]);
    expect(["FatalError", "Card", "Cards.X", "fatal"].map(verdict)).toEqual(Array(4).fill("retryable"));
  });

  it("a reporter's word that no retry can help ends the job", () => {
    expect(decideOk(running(), failEvent({ final: true }), at("1s")).image.state).toBe("discarded");
  });
});

describe("8.2 what an attempt leaves behind", () => {
  it("the checkpoint and the progress are kept until the next attempt, which begins without progress", () => {
    const row: JobRow = { ...running(), progress: "0.5", checkpoint: '"page 7"' };
    const backs = [failEvent(), { type: "release" }, { type: "snooze", dueAt: at("1m") }] as const;
    for (const event of backs) {
      const back = step(row, event, at("1s"));
      expect(back).toMatchObject({ progress: "0.5", checkpoint: '"page 7"' });
      const again = step(
        step({ ...back, state: "available" }, RECLAIM, at("2m")),
        startEvent({}, at("2m")),
        at("2m"),
      );
      expect(again).toMatchObject({ progress: null, checkpoint: '"page 7"' });
    }
  });
});

describe("4.2 does a retry fit", () => {
  const backoff = constant({ first: "10s", jitter: false });
  const failed = (said: Said, now = at("10s")) => decideOk(running(said), failEvent(), now);

  it("full: discarded at once if now + backoff + attempt would pass totalAt", () => {
    const settings = { timeouts: { attempt: "30s", total: "49s" }, retry: { backoff } } as const;
    const decision = failed({ settings });
    expect(decision.image.state).toBe("discarded");
    expect(errorOf(decision)).toMatchObject({ type: "total_timeout", predicted: true, elapsed: 10_000 });
    expect(namesOf(decision)).toEqual(["job.failed", "job.total_timeout", "job.discarded"]);
  });

  it("full: a retry that ends exactly at totalAt fits", () => {
    const settings = { timeouts: { attempt: "30s", total: "50s" }, retry: { backoff } } as const;
    expect(failed({ settings }).image.state).toBe("retryable");
  });

  it("the attempt's own error is kept in the history, before the predicted one", () => {
    const settings = { timeouts: { attempt: "30s", total: "49s" }, retry: { backoff } } as const;
    expect(failed({ settings }).documents?.errors?.map(({ type }) => type)).toEqual([
      "Error",
      "total_timeout",
    ]);
  });

  it("a built-in attempt counts as 0 here", () => {
    const settings = { timeouts: { total: "21s" }, retry: { backoff } } as const;
    expect(failed({ settings }).image.state).toBe("retryable");
    expect(failed({ settings }, at("12s")).image.state).toBe("discarded");
  });

  it("an attempt named by any settings counts, the engine's defaults included", () => {
    const context = { engineSettings: { timeouts: { attempt: 30_000 } } };
    const settings = { timeouts: { total: "49s" }, retry: { backoff } } as const;
    expect(failed({ settings, context }).image.state).toBe("discarded");
  });

  it("any: it starts while any budget is left, with the attempt cut to what remains", () => {
    const said: Said = {
      enqueue: { timeouts: { total: "25s" } },
      settings: { timeouts: { attempt: "30s" }, retry: { backoff, retryFit: "any" } },
    };
    const waiting = step(running(said), failEvent(), at("10s"));
    expect([waiting.state, waiting.wakeAt]).toEqual(["retryable", at("20s")]);
    const ready = step(step(waiting, { type: "wake" }, at("20s")), RECLAIM, at("20s"));
    expect(step(ready, startEvent(said, at("20s")), at("20s")).softAt).toBe(at("25s"));
  });

  it("any: a retry that could only begin at totalAt does not fit", () => {
    const settings = { timeouts: { total: "20s" }, retry: { backoff, retryFit: "any" } } as const;
    expect(failed({ settings }).image.state).toBe("discarded");
    expect(failed({ settings }, at("10s") - 1).image.state).toBe("retryable");
  });
});

describe("4.3 crashes, stalls and expiredClaims", () => {
  it("a crash or stall of a started attempt spends it", () => {
    const row = running({ settings: { retry: { attempts: 1 } } });
    expect(decideOk(row, { type: "wake", seenAt: null }, at("60s")).image).toMatchObject({
      state: "discarded",
      attempt: 1,
    });
  });

  it("a claim that runs out before its handler was entered spends no attempt and adds an expired claim", () => {
    const decision = decideOk(claimed(), { type: "wake" }, at("10s"));
    expect(decision.image).toMatchObject({ state: "available", attempt: 0, returns: 0, expiredClaims: 1 });
    expect(namesOf(decision)).toEqual(["job.claim_expired"]);
    expect(decideOk(claimed(), { type: "wake" }, at("10s") - 1).image).toMatchObject({
      state: "active",
      expiredClaims: 0,
    });
  });

  it("expiredClaims add up, and neither a failure, a stall nor a snooze forgets them", () => {
    let row = enqueued();
    for (let nth = 0; nth < 3; nth++) {
      row = step(step(row, RECLAIM, at("0s")), { type: "wake" }, at("10s"));
    }
    expect(row.expiredClaims).toBe(3);
    const started = step(step(row, RECLAIM, at("10s")), startEvent({}, at("11s")), at("11s"));
    expect(started.expiredClaims).toBe(3);
    expect(step(started, failEvent(), at("12s")).expiredClaims).toBe(3);
    expect(step(started, { type: "snooze", dueAt: at("1m") }, at("12s")).expiredClaims).toBe(3);
    expect(step(started, { type: "wake", seenAt: null }, at("2m"))).toMatchObject({
      state: "retryable",
      expiredClaims: 3,
    });
  });

  it("onStall discard forbids a second run after a crash, also when the sweep comes late", () => {
    const row = running({ settings: { retry: { onStall: "discard" } } });
    for (const now of [at("60s"), at("2d")]) {
      const decision = decideOk(row, { type: "wake", seenAt: null }, now);
      expect(decision.image.state).toBe("discarded");
      expect(errorOf(decision).type).toBe("stalled");
    }
    expect(decideOk(row, failEvent(), at("1s")).image.state).toBe("retryable");
  });

  it("a named visibility timeout that runs out makes the job available at once and spends the attempt", () => {
    const row = running({ worker: { hears: false, remote: true, visibility: 20_000 } });
    expect(decideOk(row, { type: "wake" }, at("20s") - 1).image.state).toBe("active");
    const decision = decideOk(row, { type: "wake" }, at("20s"));
    expect(decision.image).toMatchObject({ state: "available", attempt: 1 });
    expect(errorOf(decision).type).toBe("visibility_timeout");
    expect(decision.fence).toBeGreaterThan(row.fence);
  });

  it("a visibility timeout discards at the limit", () => {
    const said: Said = {
      settings: { retry: { attempts: 1 } },
      worker: { hears: false, remote: true, visibility: 20_000 },
    };
    const decision = decideOk(running(said), { type: "wake" }, at("20s"));
    expect(decision.image.state).toBe("discarded");
    expect(namesOf(decision)).toEqual(["job.visibility_timeout", "job.failed", "job.discarded"]);
  });

  it("a visibility timeout that except names is not retried", () => {
    const said: Said = {
      settings: { retry: { except: ["visibility_timeout"] } },
      worker: { hears: false, remote: true, visibility: 20_000 },
    };
    const decision = decideOk(running(said), { type: "wake" }, at("20s"));
    expect(decision.image).toMatchObject({ state: "discarded", attempt: 1 });
    expect(namesOf(decision)).toEqual(["job.visibility_timeout", "job.failed", "job.discarded"]);
  });

  it("a shorter heartbeat runs out as a stall, not as a visibility timeout", () => {
    const said: Said = {
      settings: { timeouts: { heartbeat: "10s" } },
      worker: { hears: false, remote: true, visibility: 20_000 },
    };
    expect(errorOf(decideOk(running(said), { type: "wake" }, at("10s"))).type).toBe("stalled");
  });
});

describe("4.4 giving back", () => {
  it("a release gives the attempt back and goes to available, with its error in the history", () => {
    const error = { type: "shutdown", code: "shutdown", message: "The worker shut down" };
    const row = running();
    const decision = decideOk(row, { type: "release", error }, at("5s"));
    expect(decision.image).toMatchObject({ state: "available", attempt: 0, returns: 1, rank: row.rank });
    expect(errorOf(decision)).toEqual({ ...error, attempt: 1, at: at("5s") });
  });

  it("a release with a delay waits that long", () => {
    const decision = decideOk(claimed(), { type: "release", delay: 5_000 }, at("1s"));
    expect(decision.image).toMatchObject({ state: "scheduled", wakeAt: at("6s"), wake: "ready" });
  });

  it("a release with a delay keeps the slot of a strict limit, so no job of its key overtakes it", () => {
    const row = {
      ...claimed(),
      limitKey: "lane",
      options: { limit: { concurrency: 1, strict: true } as const },
    };
    const decision = decideOk(row, { type: "release", delay: 5_000 }, at("1s"));
    expect(decision.image).toMatchObject({ state: "retryable", attempt: 0, wake: "ready", wakeAt: at("6s") });
  });

  it("a snooze gives the attempt back and goes to scheduled", () => {
    const decision = decideOk(running(), { type: "snooze", dueAt: at("1h") }, at("5s"));
    expect(decision.image).toMatchObject({ state: "scheduled", attempt: 0, returns: 1, wakeAt: at("1h") });
    expect(decision.events).toEqual([{ name: "job.snoozed", dueAt: at("1h") }]);
  });

  it("a snooze at or past totalAt discards at once, predicted", () => {
    const row = running({ settings: { timeouts: { total: "1h" } } });
    const decision = decideOk(row, { type: "snooze", dueAt: at("1h") }, at("5s"));
    expect(decision.image.state).toBe("discarded");
    expect(errorOf(decision)).toMatchObject({ type: "total_timeout", predicted: true });
    expect(decideOk(row, { type: "snooze", dueAt: at("1h") - 1 }, at("5s")).image.state).toBe("scheduled");
  });

  it("the fence grows all the same", () => {
    const row = running();
    const again = step(step(row, { type: "release" }, at("1s")), RECLAIM, at("2s"));
    expect(again.fence).toBeGreaterThan(row.fence);
  });

  it("a job is returned at most 1,000 times, by releases and snoozes together", () => {
    expect(MOST_RETURNS).toBe(1_000);
    let row = running();
    for (let nth = 1; nth <= MOST_RETURNS; nth++) {
      const back = nth % 2 ? ({ type: "release" } as const) : ({ type: "snooze", dueAt: at("0s") } as const);
      const waiting = step(row, back, at("0s"));
      const ready = waiting.state === "scheduled" ? step(waiting, { type: "wake" }, at("0s")) : waiting;
      row = step(step(ready, RECLAIM, at("0s")), startEvent(), at("0s"));
    }
    expect([row.returns, row.attempt]).toEqual([MOST_RETURNS, 1]);
    for (const event of [{ type: "release" }, { type: "snooze", dueAt: at("1s") }] as const) {
      const decision = decideOk(row, event, at("0s"));
      expect(decision.image.state).toBe("discarded");
      expect(errorOf(decision).type).toBe("too_many_returns");
    }
  });

  it("a claim handed back unspent is no return", () => {
    expect(step(claimed(), { type: "release" }, at("1s")).returns).toBe(0);
  });
});

describe("4.5 exhausted", () => {
  const dead = { retry: { attempts: 1, onExhausted: "dead-letter" } } as const;
  const isDead = (row: JobRow, event: Parameters<typeof decideOk>[1], now: number) => {
    const { image } = decideOk(row, event, now);
    expect(image.state).toBe("discarded");
    return image.deadLetter;
  };

  it("discarded, or also a dead letter when onExhausted says so", () => {
    expect(isDead(running({ settings: { retry: { attempts: 1 } } }), failEvent(), at("1s"))).toBe(false);
    const decision = decideOk(running({ settings: dead }), failEvent(), at("1s"));
    expect(decision.image).toMatchObject({ state: "discarded", deadLetter: true, pruneAt: null });
    expect(decision.events.at(-1)).toMatchObject({ name: "job.discarded", deadLetter: true });
  });

  it("it decides for total_timeout and stalled too", () => {
    const total = { ...dead, timeouts: { total: "1m" } } as const;
    expect(isDead(enqueued({ settings: total }), { type: "wake" }, at("1m"))).toBe(true);
    expect(isDead(running({ settings: total }), { type: "expire" }, at("90s"))).toBe(true);
    expect(isDead(running({ settings: total }), { type: "snooze", dueAt: at("2m") }, at("1s"))).toBe(true);
    expect(isDead(running({ settings: dead }), { type: "wake", seenAt: null }, at("60s"))).toBe(true);
  });

  it("wait, mode discard, Discard and cancel never make a dead letter", () => {
    const wait = { ...dead, timeouts: { wait: "1m" } } as const;
    expect(isDead(enqueued({ settings: wait }), { type: "wake" }, at("1m"))).toBe(false);
    const mode = { ...dead, timeouts: { attempt: "1m", grace: "0s", mode: "discard" } } as const;
    expect(isDead(running({ settings: mode }), { type: "expire" }, at("1m"))).toBe(false);
    expect(isDead(running({ settings: dead }), failEvent({ discard: true }), at("1s"))).toBe(false);
    expect(decideOk(running({ settings: dead }), { type: "cancel" }, at("1s")).image.deadLetter).toBe(false);
  });

  it("startedAt stays on a job that ended from a running attempt, and on no other", () => {
    const ended = decideOk(running(), failEvent({ final: true }), at("1s")).image;
    expect([ended.startedAt, ended.finishedAt]).toEqual([at("0s"), at("1s")]);
    const expired = decideOk(
      enqueued({ settings: { timeouts: { wait: "1m" } } }),
      { type: "wake" },
      at("1m"),
    ).image;
    expect([expired.startedAt, expired.finishedAt]).toEqual([null, at("1m")]);
    const between = step(
      running({ settings: { retry: { backoff: delays(["1m"]) } } }),
      failEvent(),
      at("1s"),
    );
    expect(decideOk(between, { type: "cancel" }, at("2s")).image.startedAt).toBeNull();
  });
});
