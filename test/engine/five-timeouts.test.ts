import { describe, expect, it, vi } from "vitest";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { constant, type PolicyOptions, TimeoutError } from "../../src/index.ts";
import { deaf, deafWith, jobOf, jobWith, obedient, openStage, openWithJob, START } from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };

describe("1 the five timeouts at work", () => {
  it("wait: a job that is not started in time is discarded, with its own events and no attempt", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf({ timeouts: { wait: "5m" } }));
    await stage.advance("299999ms");
    expect((await stage.load(job)).state).toBe("available");
    await stage.advance("5ms");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "discarded", attempt: 0, startedAt: null, deadLetter: false });
    expect(row.errors).toEqual([
      {
        type: "enqueue_ttl_expired",
        code: "enqueue_ttl_expired",
        message: "Expired: not started within 5m",
        kind: "enqueue_ttl",
        limit: 300_000,
        elapsed: (row.finishedAt ?? 0) - START,
        attempt: 0,
        at: row.finishedAt,
      },
    ]);
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.ttl_expired", "job.expired", "job.discarded"]);
    const [count] = stage.counters().timeouts;
    expect(count).toEqual({
      kind: "enqueue_ttl",
      mode: "fail",
      type: "test.job",
      queue: "default",
      count: 1,
    });
  });

  it("wait runs until the first start only", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(400_000), { timeouts: { wait: "5m" } });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("410s");
    expect((await stage.load(job)).state).toBe("completed");
  });

  it("attempt: soft signal, grace, then a failed attempt, and the retry policy decides", async () => {
    const stage = await openStage();
    const reasons: unknown[] = [];
    const { definition, processors } = jobWith(
      ({ signal }) => {
        signal.addEventListener("abort", () => reasons.push([stage.now() - START, signal.reason]));
        return deaf();
      },
      {
        timeouts: { attempt: "30s", grace: "5s" },
        retry: { attempts: 2, backoff: constant({ first: "1h" }) },
      },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("30s");
    expect(reasons).toEqual([[30_000, expect.any(TimeoutError)]]);
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("5s");
    const row = await stage.load(job);
    expect(row.state).toBe("retryable");
    expect(row.errors?.[0]).toMatchObject({
      type: "timeout",
      message: "Timed out after 30s",
      kind: "execution",
      limit: 30_000,
      elapsed: 35_000,
      forced: true,
      attempt: 1,
    });
    expect(stage.names(job.id)).toEqual([
      "job.enqueued",
      "job.started",
      "job.stuck",
      "job.timeout",
      "job.failed",
      "job.retrying",
    ]);
    expect(stage.counters()).toMatchObject({
      failed: 1,
      retrying: 1,
      timeouts: [{ kind: "execution", mode: "fail", type: "test.job", queue: "default", count: 1 }],
    });
  });

  it("total: counts queue time, attempts and backoff, and then discards the job", async () => {
    const stage = await openStage();
    let attempts = 0;
    const { definition, processors } = jobWith(
      async () => {
        attempts += 1;
        await stage.sleep(60_000);
        throw new Error("no");
      },
      {
        timeouts: { total: "10m" },
        retry: { attempts: 100, backoff: constant({ first: "1m", jitter: false }) },
      },
    );
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5m");
    stage.work(processors);
    await stage.advance("301s");
    const row = await stage.load(job);
    expect(row.state).toBe("discarded");
    expect(row.errors?.at(-1)).toMatchObject({ type: "total_timeout", kind: "total", limit: 600_000 });
    expect((row.finishedAt ?? 0) - START).toBeGreaterThanOrEqual(600_000);
    expect(attempts).toBe(3);
    expect(stage.counters().timeouts).toEqual([
      { kind: "total", mode: "fail", type: "test.job", queue: "default", count: 1 },
    ]);
  });

  it("total: a running attempt gets the signal and is discarded after its grace, without a retry", async () => {
    const { stage, job } = await openWithJob(obedient, { timeouts: { total: "1m", grace: "5s" } });
    await stage.advance("1m");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "discarded", attempt: 1, finishedAt: START + 60_000 });
    expect(row.errors?.[0]).toMatchObject({
      type: "total_timeout",
      message: "Timed out (deadline exceeded, 60s total budget)",
    });
    expect(stage.names(job.id).slice(-3)).toEqual(["job.total_timeout", "job.failed", "job.discarded"]);
  });

  it("heartbeat: a handler that must beat and does not is stalled, and the retry policy decides", async () => {
    const { stage, job } = await openWithJob(deaf, { timeouts: { heartbeat: "10s" } });
    await stage.advance("10s");
    const row = await stage.load(job);
    expect(row.state).toBe("retryable");
    expect(row.errors?.[0]).toMatchObject({ type: "stalled", kind: "stalled", limit: 10_000, attempt: 1 });
    expect(stage.names(job.id).slice(-3)).toEqual(["job.stalled", "job.failed", "job.retrying"]);
    expect(stage.counters().timeouts[0]).toMatchObject({ kind: "stalled", count: 1 });
  });

  it("the built-ins: 30 min attempt, 30 s grace, no wait, no total, 60 s heartbeat", async () => {
    const { stage, job } = await openWithJob(deaf, once);
    await stage.advance("1s");
    expect(await stage.load(job)).toMatchObject({
      softAt: START + 1_800_000,
      hardAt: START + 1_830_000,
      totalAt: null,
      waitAt: null,
      heartbeat: 60_000,
    });
    await stage.advance("30m");
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("29s");
    expect((await stage.load(job)).state).toBe("discarded");
  });
});

describe("1 the mode", () => {
  it("discard abandons the job at its attempt timeout: no retry, no dead letter, counted under its mode", async () => {
    const { stage, job } = await openWithJob(obedient, {
      timeouts: { attempt: "10s", mode: "discard" },
      retry: { onExhausted: "dead-letter" },
    });
    await stage.advance("10s");
    expect(await stage.load(job)).toMatchObject({ state: "discarded", attempt: 1, deadLetter: false });
    expect(stage.names(job.id).slice(-3)).toEqual(["job.timeout", "job.failed", "job.discarded"]);
    expect(stage.counters().timeouts).toEqual([
      { kind: "execution", mode: "discard", type: "test.job", queue: "default", count: 1 },
    ]);
  });

  it("the mode does not apply to total and stalls", async () => {
    const stage = await openStage();
    const settings: PolicyOptions = {
      timeouts: { heartbeat: "10s", mode: "discard" },
      retry: { backoff: constant({ first: "1h" }), onExhausted: "dead-letter" },
    };
    const stalling = jobWith(deaf, settings, "a.stalling");
    const total = jobWith(obedient, { ...settings, timeouts: { total: "10s", mode: "discard" } }, "b.total");
    stage.work([...stalling.processors, ...total.processors]);
    const stalled = await stage.engine.enqueue(stalling.definition);
    const over = await stage.engine.enqueue(total.definition);
    await stage.advance("11s");
    expect((await stage.load(stalled)).state).toBe("retryable");
    expect(await stage.load(over)).toMatchObject({ state: "discarded", deadLetter: true });
  });
});

describe("1.1 none", () => {
  it("switches a limit off, so that later sources do not count", async () => {
    const stage = await openStage({ timeouts: { attempt: "1s", wait: "1s", total: "1s", heartbeat: "1s" } });
    const { definition, processors } = jobWith(() => stage.sleep(3_600_000), {
      timeouts: { attempt: "none", wait: "none", total: "none", heartbeat: "none" },
    });
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    stage.work(processors);
    await stage.advance("1s");
    expect(await stage.load(job)).toMatchObject({
      softAt: null,
      hardAt: null,
      totalAt: null,
      heartbeat: null,
    });
    await stage.advance("1h");
    expect((await stage.load(job)).state).toBe("completed");
  });
});

describe("1.4 and 1.5 grace", () => {
  const unbounded: PolicyOptions = { ...once, timeouts: { attempt: "10s", grace: "unbounded" } };

  it("unbounded: a late success counts at any time", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(3_600_000), unbounded);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("59m");
    expect(await stage.load(job)).toMatchObject({ state: "active", hardAt: null });
    await stage.advance("1m");
    expect((await stage.load(job)).state).toBe("completed");
    expect(stage.told("job.completed")).toMatchObject({ late: true });
    expect(stage.counters()).toMatchObject({ late: 1, stuck: 0, timeouts: [] });
  });

  it("unbounded: a cancel still ends it, and frees its slot after the built-in grace", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, unbounded);
    const worker = stage.work(processors, { queues: { default: { concurrency: 1 } }, maxStuck: 5 });
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    await stage.engine.cancel(job.id);
    expect((await stage.load(job)).state).toBe("cancelled");
    await stage.advance("29s");
    expect(worker.status().running).toBe(1);
    await stage.advance("2s");
    expect(worker.status()).toMatchObject({ running: 0, stuck: 1 });
  });

  it("unbounded: a stall still ends it, as the timeout that was signalled", async () => {
    const { stage, job } = await openWithJob(deaf, {
      ...once,
      timeouts: { attempt: "10s", grace: "unbounded", heartbeat: "30s" },
    });
    await stage.advance("29s");
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("1s");
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["discarded", "timeout"]);
  });

  it("unbounded: shutdown still ends it, as the timeout that was signalled", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, unbounded);
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    const closing = worker.close({ drain: "0s" });
    await stage.advance("5s");
    await closing;
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["discarded", "timeout"]);
  });

  it("0s: the verdict is given at the signal itself", async () => {
    const stage = await openStage();
    let heard = false;
    const { definition, processors } = jobWith(
      ({ signal }) => {
        signal.addEventListener("abort", () => (heard = true));
        return deaf();
      },
      { ...once, timeouts: { attempt: "10s", grace: "0s" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    expect(await stage.load(job)).toMatchObject({ state: "discarded", finishedAt: START + 10_000 });
    expect(heard).toBe(true);
  });
});

describe("1.2 total and attempt", () => {
  it("an inherited or built-in attempt that is longer is cut to the total", async () => {
    const stage = await openStage({ timeouts: { attempt: "1h" } });
    let deadline: number | null = null;
    const { definition, processors } = jobWith((context) => {
      deadline = context.deadline;
      return context.remaining();
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition, null, { timeouts: { total: "1m" } });
    await stage.settle();
    await expect(job.result()).resolves.toBeLessThanOrEqual(60_000);
    expect(deadline).toBe(START + 60_000);
  });
});

describe("1.3 delays longer than 2^31 ms", () => {
  it("a job scheduled in 30 days starts in 30 days", async () => {
    const stage = await openStage();
    const startedAt: number[] = [];
    const { definition, processors } = jobWith(() => void startedAt.push(stage.now()));
    stage.work(processors);
    await stage.engine.enqueue(definition, null, { delay: "30d" });
    await stage.settle();
    stage.system.pause(30 * 86_400_000 - 60_000);
    await stage.advance("59999ms");
    expect(startedAt).toEqual([]);
    await stage.advance("5ms");
    expect((startedAt[0] ?? 0) - START - 30 * 86_400_000).toBeLessThanOrEqual(2);
  });

  it("an attempt timeout of 30 days fires after 30 days and not at once", async () => {
    const stage = await openStage();
    const abortedAt: number[] = [];
    const { definition, processors } = jobWith(
      deafWith(() => abortedAt.push(stage.now())),
      { timeouts: { attempt: "30d", heartbeat: "none" } },
    );
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("1m");
    stage.system.pause(30 * 86_400_000 - 120_000);
    await stage.advance("59s");
    expect(abortedAt).toEqual([]);
    await stage.advance("1s");
    expect(abortedAt).toEqual([START + 30 * 86_400_000]);
  });

  it("the real timers wait longer than 2^31 ms and can be cancelled", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const fired: string[] = [];
      realSystem.after(2 ** 31 + 1_000, () => fired.push("long"));
      realSystem.after(2 ** 31 + 500, () => fired.push("never")).cancel();
      vi.advanceTimersByTime(2 ** 31 + 999);
      expect(fired).toEqual([]);
      vi.advanceTimersByTime(1);
      expect(fired).toEqual(["long"]);
    } finally {
      vi.useRealTimers();
    }
  });
});
