import { describe, expect, it } from "vitest";
import type { AttemptContext, PolicyOptions } from "../../src/index.ts";
import { createLatch } from "../../src/testing/index.ts";
import { logOf } from "../../src/testing/read-store.ts";
import {
  deaf,
  errorOf,
  jobOf,
  jobWith,
  openOver,
  openStage,
  openWithJob,
  START,
  type Stage,
} from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };

describe("3.4 late success", () => {
  it("late success is completed, marked late and counted, and emits only job.completed", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(7_000).then(() => "late"), {
      timeouts: { attempt: "5s", grace: "5s" },
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("7s");
    expect(await stage.load(job)).toMatchObject({ state: "completed", result: '"late"', errors: null });
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.started", "job.completed"]);
    expect(stage.told("job.completed")).toMatchObject({ late: true, elapsed: 7_000, attempt: 1 });
    expect(stage.counters()).toMatchObject({ completed: 1, late: 1, failed: 0, timeouts: [] });
  });

  it("after hardAt a handler's result, progress, log, beat and checkpoint are refused", async () => {
    const stage = await openStage();
    const refusals: unknown[] = [];
    const { definition, processors } = jobWith(
      async (context) => {
        context.progress(0.5, "half");
        context.log("in time");
        await stage.sleep(12_000);
        context.progress(1, "too late");
        context.log("too late");
        context.beat();
        refusals.push(await errorOf(context.checkpoint({ too: "late" })));
        return "too late";
      },
      { ...once, timeouts: { attempt: "5s", grace: "5s" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("11s");
    const verdict = await stage.load(job);
    expect(verdict.state).toBe("discarded");
    await stage.advance("5s");
    expect(await stage.load(job)).toEqual(verdict);
    expect(verdict).toMatchObject({ checkpoint: null, result: null });
    expect(refusals).toEqual([expect.objectContaining({ kind: "execution" })]);
    const logs = await logOf(stage.engine.store, job.id);
    expect(logs.map((line) => (line as { message: string }).message)).toEqual([
      "in time",
      "Timed out after 5s",
    ]);
  });
});

describe("3.6 beats", () => {
  it("without a heartbeat setting, a handler may await for 10 minutes", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(600_000));
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("601s");
    expect(await stage.load(job)).toMatchObject({ state: "completed", attempt: 1 });
    expect(stage.counters().timeouts).toEqual([]);
  });

  it("with a heartbeat setting, a handler that awaits for 10 minutes stalls", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(600_000), {
      ...once,
      timeouts: { heartbeat: "1m" },
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("59999ms");
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("1ms");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "stalled", limit: 60_000 });
  });

  it.each<[string, (context: AttemptContext, nth: number) => unknown]>([
    ["beat", ({ beat }) => beat()],
    ["progress", ({ progress }, nth) => progress(nth / 100)],
    ["checkpoint", ({ checkpoint }, nth) => checkpoint({ nth })],
  ])("%s() keeps a handler alive, and never moves softAt", async (_name, sign) => {
    const stage = await openStage();
    const deadlines = new Set<number | null>();
    const { definition, processors } = jobWith(
      async (context) => {
        for (let nth = 0; nth < 100; nth++) {
          await stage.sleep(8_000);
          await sign(context, nth);
          deadlines.add(context.deadline);
        }
      },
      { ...once, timeouts: { heartbeat: "10s", attempt: "5m", total: "1h" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("4m");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "active", softAt: START + 300_000, totalAt: START + 3_600_000 });
    expect(row.stallAt).toBeGreaterThan(START + 240_000);
    await stage.advance("61s");
    expect([...deadlines]).toEqual([START + 300_000]);
    expect(stage.counters().timeouts).toEqual([]);
  });

  it("a log line does not count as a beat", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      async ({ log }) => {
        for (;;) {
          await stage.sleep(2_000);
          log("still here");
        }
      },
      { ...once, timeouts: { heartbeat: "10s" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("11s");
    expect((await stage.load(job)).errors?.[0]?.type).toBe("stalled");
  });

  it("a heartbeat shorter than the worker's own pace reaches the store in time", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      async ({ beat }) => {
        for (let nth = 0; nth < 200; nth++) {
          await stage.sleep(50);
          beat();
        }
      },
      { ...once, timeouts: { heartbeat: "200ms" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("11s");
    expect((await stage.load(job)).state).toBe("completed");
  });

  it("a long heartbeat does not extend the lease of a claim whose start is not committed yet", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      ({ beat }) => {
        beat();
        return deaf();
      },
      { timeouts: { heartbeat: "10h" } },
    );
    stage.work(processors);
    // An idle worker beats at 5 s: just after this job has started, and before its start is marked.
    await stage.advance("4900ms");
    const job = await stage.engine.enqueue(definition);
    await stage.advance("300ms");
    const row = await stage.load(job);
    expect(row.startedAt).toBeNull();
    expect(row.stallAt).toBeLessThanOrEqual(START + 15_000);
  });
});

describe("3.7 stuck", () => {
  const settings: PolicyOptions = { ...once, timeouts: { attempt: "5s", grace: "1s" } };

  async function stuckTwice(): Promise<{
    stage: Stage;
    open: () => void;
    worker: ReturnType<Stage["work"]>;
  }> {
    const stage = await openStage();
    const latch = createLatch();
    const { definition, processors } = jobWith(() => latch.pass(), settings);
    const quick = jobWith(() => "done", {}, "quick.job");
    const worker = stage.work([...processors, ...quick.processors], {
      queues: { default: { concurrency: 3 } },
      maxStuck: 2,
    });
    await stage.engine.enqueueMany(definition, [1, 2]);
    await stage.advance("6s");
    return { stage, worker, open: latch.open };
  }

  it("a handler that ignores its signal is fenced off at hardAt and counted as stuck, and its slot is freed", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      ({ payload }) => (payload === "deaf" ? deaf() : "ok"),
      settings,
    );
    const worker = stage.work(processors, { queues: { default: { concurrency: 1 } }, maxStuck: 2 });
    const job = await stage.engine.enqueue(definition, "deaf");
    const next = await stage.engine.enqueue(definition, "next");
    await stage.advance("5999ms");
    expect((await stage.load(next)).state).not.toBe("completed");
    await stage.advance("10ms");
    expect((await stage.load(job)).finishedAt).toBe(START + 6_000);
    expect((await stage.load(next)).state).toBe("completed");
    expect(stage.names(job.id)).toContain("job.stuck");
    expect(stage.counters().stuck).toBe(1);
    expect(worker.status()).toMatchObject({ ready: true, running: 0, stuck: 1 });
  });

  it("a worker with maxStuck stuck handlers stops claiming and is not ready", async () => {
    const { stage, worker } = await stuckTwice();
    expect(worker.status()).toMatchObject({ ready: false, stuck: 2, reason: expect.stringMatching(/stuck/) });
    expect(stage.told("worker.unready")).toMatchObject({ worker: worker.id });
    const job = await stage.engine.enqueue(jobOf({}, "quick.job"));
    await stage.advance("1m");
    expect((await stage.load(job)).state).toBe("available");
  });

  it("a worker that stopped claiming claims again when its stuck handlers end", async () => {
    const { stage, worker, open } = await stuckTwice();
    const job = await stage.engine.enqueue(jobOf({}, "quick.job"));
    await stage.advance("5s");
    open();
    await stage.advance("2s");
    expect(worker.status()).toMatchObject({ ready: true, reason: null, stuck: 0 });
    expect(stage.names()).toContain("worker.ready");
    expect(stage.names().filter((name) => name === "job.unstuck")).toHaveLength(2);
    expect((await stage.load(job)).state).toBe("completed");
  });

  it("maxStuck is the worker's concurrency by default", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, settings);
    const worker = stage.work(processors, { queues: { default: { concurrency: 1 } } });
    const [, next] = await stage.engine.enqueueMany(definition, [1, 2]);
    await stage.advance("7s");
    expect(worker.status()).toMatchObject({ ready: false, stuck: 1, running: 0, held: 0 });
    expect((await stage.load(next as { id: string })).state).toBe("available");
  });

  it("a cancelled handler that ignores its signal frees its slot after its grace and counts as stuck", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, { timeouts: { grace: "3s" } });
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    await stage.engine.cancel(job.id);
    await stage.advance("2900ms");
    expect(worker.status()).toMatchObject({ running: 1, stuck: 0 });
    await stage.advance("200ms");
    expect(worker.status()).toMatchObject({ running: 0, stuck: 1 });
  });

  it("the sweep ends an overdue attempt a second later than its worker should have", async () => {
    // The worker's commits never arrive, but its beats and the sweep's do.
    const commits = { areDropped: false };
    const stage = await openOver((store) => ({
      ...store,
      commit: async (units, options) => {
        const isSweeps = units.some((unit) => unit.job?.nextFence !== undefined);
        if (commits.areDropped && !isSweeps) throw new Error("dropped");
        return store.commit(units, options);
      },
    }));
    const { definition, processors } = jobWith(deaf, settings);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("2s");
    commits.areDropped = true;
    await stage.advance("4990ms");
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("20ms");
    const row = await stage.load(job);
    expect([row.state, row.errors?.length, row.errors?.[0]?.type]).toEqual(["discarded", 1, "timeout"]);
    commits.areDropped = false;
    await stage.advance("5s");
    expect(await stage.load(job)).toEqual(row);
    expect(stage.counters().lost).toBe(1);
  });
});

describe("8.2 notes of an attempt", () => {
  it("the next attempt finds the checkpoint; progress and logs are kept until then", async () => {
    const stage = await openStage();
    const found: unknown[] = [];
    const { definition, processors } = jobWith(
      async ({ attempt, checkpoint, lastCheckpoint, log, progress }) => {
        found.push(lastCheckpoint);
        log(`attempt ${attempt}`, { attempt });
        progress(attempt / 2, { attempt });
        await checkpoint({ done: attempt });
        if (attempt === 1) throw new Error("again");
      },
      { retry: { attempts: 2 } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    expect(found).toEqual([undefined, { done: 1 }]);
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "completed", checkpoint: '{"done":2}' });
    expect(JSON.parse(row.progress ?? "")).toEqual({ value: 1, note: { attempt: 2 } });
    const logs = await logOf(stage.engine.store, job.id);
    expect(logs).toMatchObject([
      { message: "attempt 1", attempt: 1, fields: { attempt: 1 } },
      { message: "attempt 2", attempt: 2 },
    ]);
    expect(stage.names(job.id)).toContain("job.progress");
  });

  it("a checkpoint that is written right before the end is committed with the verdict", async () => {
    const { stage, job } = await openWithJob(
      ({ checkpoint }) => {
        checkpoint({ last: true }).catch(() => {});
        throw new Error("again");
      },
      { retry: { attempts: 2 } },
    );
    await stage.settle();
    expect(await stage.load(job)).toMatchObject({ state: "retryable", checkpoint: '{"last":true}' });
  });
});

describe("3.6 a blocked event loop", () => {
  /** Blocks this machine, as `while (true)` does: time passes and nothing runs. */
  const block = (stage: Stage, delay: number) => stage.system.pause(delay);

  it("is announced with the jobs that ran, including the one that blocked it", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(async ({ payload }) => {
      await stage.sleep(1_000);
      if (payload === "guilty") block(stage, 5_000);
      else await stage.sleep(60_000);
    });
    stage.work(processors);
    const jobs = await stage.engine.enqueueMany(definition, ["innocent", "guilty"]);
    await stage.advance("2s");
    const told = stage.told("worker.blocked");
    expect(told?.jobs.map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort());
    expect(told?.gap).toBeGreaterThan(4_500);
  });

  it("is announced once, and not at all if it was short", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(60_000));
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("1s");
    block(stage, 200);
    await stage.advance("2s");
    expect(stage.names()).not.toContain("worker.blocked");
    block(stage, 2_000);
    await stage.advance("5s");
    expect(stage.names().filter((name) => name === "worker.blocked")).toHaveLength(1);
  });
});
