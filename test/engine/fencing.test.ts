import { describe, expect, it } from "vitest";
import { Discard, LATENESS_BOUNDS, type PolicyOptions, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createSimSystem, type FaultPlan, faultyStore } from "../../src/testing/index.ts";
import { logOf } from "../../src/testing/read-store.ts";
import {
  deaf,
  jobOf,
  jobWith,
  obedient,
  openOver,
  openPair,
  openStage,
  type Pair,
  START,
  type Stage,
  silent,
  sleepOn,
  storeOn,
} from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };

describe("3.8 a write with an old fence changes nothing", () => {
  /** The second machine runs a job and stands still; the first takes it over and ends it. */
  async function takenOver(pair: Pair, late: (stage: Stage) => unknown) {
    const stalling = jobWith(async (context) => {
      await sleepOn(pair.second.system, 95_000);
      context.log("late");
      context.progress(1, "late");
      context.checkpoint({ late: true }).catch(() => {});
      return late(pair.second);
    });
    const worker = pair.second.work(stalling.processors);
    const job = await pair.second.engine.enqueue(stalling.definition);
    await pair.advance(2_000);
    pair.first.work(jobWith(() => "taken over").processors);
    await pair.pauseSecond(90_000);
    await pair.advance(10_000);
    return { job, worker };
  }

  it.each<[string, (stage: Stage) => unknown]>([
    ["a result", () => "late"],
    [
      "an error",
      () => {
        throw new Error("late");
      },
    ],
    [
      "a Discard",
      () => {
        throw new Discard("late");
      },
    ],
  ])("%s after a takeover", async (_name, late) => {
    const pair = await openPair();
    const { job } = await takenOver(pair, late);
    const row = await pair.first.load(job);
    expect(row).toMatchObject({ state: "completed", attempt: 2, result: '"taken over"', checkpoint: null });
    expect(row.errors?.map(({ type }) => type)).toEqual(["stalled"]);
    expect(pair.second.counters()).toMatchObject({ lost: 1, completed: 0, failed: 0, discarded: 0 });
    expect(pair.second.names(job.id)).toContain("job.lost");
    expect(pair.second.names(job.id)).not.toContain("job.completed");
    expect(await logOf(pair.first.engine.store, job.id)).toEqual([]);
  });

  it("a cancelled job refuses the handler's result even if its worker heard no hint and no beat", async () => {
    const pair = await openPair(silent);
    const { definition, processors } = jobWith(() => sleepOn(pair.second.system, 1_000));
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(950);
    await pair.first.engine.cancel(job.id);
    await pair.second.system.advance(60);
    await pair.advance(500);
    expect((await pair.first.load(job)).state).toBe("cancelled");
    expect(pair.second.counters().completed).toBe(0);
  });

  it("the job that lost its claim hears so by its signal", async () => {
    const pair = await openPair();
    const kinds: string[] = [];
    const { definition, processors } = jobWith(({ signal }) => {
      signal.addEventListener("abort", () => kinds.push(signal.reason.kind));
      return deaf();
    });
    pair.second.work(processors);
    await pair.second.engine.enqueue(definition);
    await pair.advance(2_000);
    await pair.pauseSecond(90_000);
    await pair.advance(2_000);
    expect(kinds).toEqual(["lost"]);
  });
});

describe("3.8 a job that comes back to the worker that lost it", () => {
  it("runs beside its old handler, and neither slot is lost", async () => {
    const pair = await openPair();
    const { definition, processors } = jobWith(
      ({ attempt }) => (attempt === 1 ? deaf() : sleepOn(pair.second.system, 1_000)),
      { timeouts: { grace: "20s" } },
    );
    const worker = pair.second.work(processors, { queues: { default: { concurrency: 2 } } });
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(2_000);
    await pair.pauseSecond(70_000);
    await pair.advance(5_000);
    expect(await pair.first.load(job)).toMatchObject({ state: "completed", attempt: 2 });
    expect(worker.status()).toMatchObject({ running: 1, stuck: 0 });
    await pair.advance(20_000);
    expect(worker.status()).toMatchObject({ running: 0, stuck: 1 });
    const closing = worker.close();
    await pair.advance(100);
    await closing;
  });
});

describe("3.9 the error kept on the job, exactly", () => {
  it("an error of the handler: its own name, code, message, cause and stack", async () => {
    const stage = await openStage();
    class CardDeclined extends Error {
      override readonly name = "Card.Declined";
      readonly code = "card_declined";
    }
    const { definition, processors } = jobWith(() => {
      throw new CardDeclined("no funds", { cause: new RangeError("-5") });
    }, once);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    expect((await stage.load(job)).errors).toEqual([
      {
        type: "Card.Declined",
        code: "card_declined",
        message: "no funds",
        attempt: 1,
        at: START,
        stack: expect.stringContaining("fencing.test.ts"),
        cause: { type: "RangeError", message: "-5", stack: expect.any(String) },
      },
    ]);
  });

  it.each([
    ["a plain error", new Error("no"), { type: "Error", code: "handler_error", message: "no" }],
    [
      "something that is no error",
      { a: 1 },
      { type: "NotAnError", code: "handler_error", message: '{"a":1}' },
    ],
    ["nothing", undefined, { type: "NotAnError", message: "undefined" }],
  ])("%s", async (_name, thrown, record) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => Promise.reject(thrown), once);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    expect((await stage.load(job)).errors?.[0]).toMatchObject(record);
  });

  it("the four kinds of timeouts", async () => {
    const stage = await openStage();
    const cases = [
      [{ attempt: "30s", grace: "0s" }, "timeout", "Timed out after 30s", "execution", 30_000],
      [
        { total: "30s", grace: "0s" },
        "total_timeout",
        "Timed out (deadline exceeded, 30s total budget)",
        "total",
        30_000,
      ],
      [{ heartbeat: "60s" }, "stalled", "Stalled: no beat for 60s", "stalled", 60_000],
    ] as const;
    for (const [timeouts, type, message, kind, limit] of cases) {
      const { definition, processors } = jobWith(deaf, { ...once, timeouts });
      const worker = stage.work(processors);
      const job = await stage.engine.enqueue(definition);
      await stage.advance("61s");
      const [record] = (await stage.load(job)).errors ?? [];
      const { at, elapsed, ...rest } = record ?? { at: 0, elapsed: 0 };
      const forced = kind === "stalled" ? {} : { forced: true };
      expect(rest).toEqual({ type, code: type, message, kind, limit, attempt: 1, ...forced });
      expect(elapsed).toBe(limit);
      void worker.close({ drain: "0s" });
      await stage.advance("10s");
    }
  });

  it("a payload that no longer fits, and a result that does not", async () => {
    const { z } = await import("zod");
    const { defineJob } = await import("../../src/index.ts");
    const stage = await openStage();
    const producer = jobOf(once, "a.job");
    const consumer = defineJob({ type: "a.job", payload: z.object({ cents: z.int() }) });
    const wrong = defineJob({ type: "b.job", result: z.object({ receipt: z.string() }), ...once });
    stage.work([processor(consumer, () => null), processor(wrong, () => undefined as never)]);
    const unfit = await stage.engine.enqueue(producer, { cents: "1" });
    const bad = await stage.engine.enqueue(wrong);
    await stage.settle();
    expect((await stage.load(unfit)).errors?.[0]).toMatchObject({
      type: "CurfewError",
      code: "invalid_payload",
    });
    expect((await stage.load(bad)).errors?.[0]).toMatchObject({
      type: "CurfewError",
      code: "invalid_result",
    });
  });
});

describe("3.10 one clock", () => {
  it.each([600_000, -600_000])(
    "a jump of the wall clock by %i ms neither fires nor postpones",
    async (jump) => {
      const stage = await openStage();
      const abortedAt: number[] = [];
      const { definition, processors } = jobWith(
        ({ signal }) => {
          signal.addEventListener("abort", () => abortedAt.push(stage.now()));
          return deaf();
        },
        { timeouts: { attempt: "1m", grace: "1m" } },
      );
      const startedAt: number[] = [];
      const later = jobWith(() => void startedAt.push(stage.now()), {}, "later.job");
      stage.work([...processors, ...later.processors]);
      await stage.engine.enqueue(definition);
      await stage.engine.enqueue(later.definition, null, { delay: "2m" });
      await stage.advance("30s");
      stage.system.stepWall(jump);
      await stage.advance("29999ms");
      expect(abortedAt).toEqual([]);
      await stage.advance("1ms");
      expect(abortedAt).toEqual([START + 60_000]);
      await stage.advance("61s");
      expect((startedAt[0] ?? 0) - START).toBeLessThanOrEqual(120_002);
      expect((startedAt[0] ?? 0) - START).toBeGreaterThanOrEqual(120_000);
    },
  );

  it("the engine's time never goes backwards, also if the store's does", async () => {
    const system = createSimSystem({ seed: 1, startAt: START });
    let stepped = 0;
    const inner = storeOn(system);
    const store = { ...inner, clock: async () => (await inner.clock()) - stepped };
    const { Engine } = await import("../../src/engine/engine.ts");
    const engine = await Engine.open({ system, store, logger: silentLogger });
    const seen: number[] = [];
    for (let nth = 0; nth < 200; nth++) {
      if (nth === 50) stepped = 10_000;
      await system.advance(1_000);
      seen.push(engine.now());
    }
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    // It has come within a second of the store, and creeps the rest of the way: 70 ms in the 140 s since it knows.
    expect(seen.at(-1)).toBe(START + 190_930);
    await engine.close();
  });

  it("the store's clock is read again every 30 s, and followed to within a second", async () => {
    const system = createSimSystem({ seed: 1, startAt: START });
    let drift = 0;
    const inner = storeOn(system);
    const store = { ...inner, clock: async () => (await inner.clock()) + drift };
    const { Engine } = await import("../../src/engine/engine.ts");
    const engine = await Engine.open({ system, store, logger: silentLogger });
    drift = 5_000;
    await system.advance(29_999);
    expect(engine.now()).toBe(START + 29_999);
    await system.advance(2);
    expect(engine.now()).toBe(START + 34_001);
    await engine.close();
  });
});

describe("3.11 never early, and lateness is measured", () => {
  it("no deadline of 200 jobs fires before its instant, and all are in the histogram", async () => {
    const stage = await openStage();
    const early: number[] = [];
    const { definition, processors } = jobWith((context) => {
      const { signal } = context;
      signal.addEventListener("abort", () => {
        if (stage.now() < (context.deadline ?? 0)) early.push(stage.now());
      });
      return obedient(context);
    }, once);
    stage.work(processors, { queues: { default: { concurrency: 200 } } });
    for (let nth = 1; nth <= 200; nth++)
      await stage.engine.enqueue(definition, null, { timeouts: { attempt: `${nth * 7}ms` } });
    await stage.advance("2s");
    expect(early).toEqual([]);
    const { lateness } = stage.counters();
    expect(lateness.total).toBe(200);
    expect(lateness.counts).toHaveLength(LATENESS_BOUNDS.length + 1);
    expect(lateness.counts.reduce((sum, count) => sum + count, 0)).toBe(200);
    expect(lateness.counts.slice(2)).toEqual(new Array(LATENESS_BOUNDS.length - 1).fill(0));
  });

  it("a machine that stood still fires late, and says how much", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(obedient, { ...once, timeouts: { attempt: "10s" } });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("9s");
    stage.system.pause(31_000);
    await stage.advance("1s");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "timeout", limit: 10_000 });
    expect(stage.counters().lateness.sum).toBeGreaterThanOrEqual(30_000);
    expect(stage.told("worker.blocked")).toMatchObject({ jobs: [{ id: job.id, type: "test.job" }] });
  });
});

describe("3.11 the lateness of a sweep", () => {
  it("is the time since the deadline, for a job that waited", async () => {
    const stage = await openStage();
    const { definition } = jobWith(obedient, once);
    await stage.engine.enqueue(definition, null, { timeouts: { wait: "10s" } });
    await stage.advance("9s");
    stage.system.pause(6_000);
    await stage.advance("1s");
    const { lateness } = stage.counters();
    expect(lateness.total).toBe(1);
    expect(lateness.sum).toBeGreaterThanOrEqual(5_000);
    expect(lateness.sum).toBeLessThan(6_000);
  });
});

describe("3.12 events follow the commit they tell of", () => {
  it.each([
    ["timeout", { attempt: "5s" }, ["job.timeout", "job.failed", "job.retrying"]],
    ["total", { total: "5s" }, ["job.total_timeout", "job.failed", "job.discarded"]],
    ["stall", { heartbeat: "5s" }, ["job.stalled", "job.failed", "job.retrying"]],
  ] as const)("the order of a %s", async (_name, timeouts, names) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(obedient, { timeouts });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    const told = stage.names(job.id).filter((name) => !["job.stuck", "job.unstuck"].includes(name));
    expect(told).toEqual(["job.enqueued", "job.started", ...names]);
  });

  it("a commit that fails tells nothing until it has succeeded", async () => {
    const fails = { now: true };
    const plan: FaultPlan = (call) => (fails.now && call === "commit" ? "drop" : undefined);
    const stage = await openOver((store) => faultyStore(store, plan));
    const { definition, processors } = jobWith(() => "done");
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    expect(stage.names(job.id)).toEqual(["job.enqueued"]);
    expect(stage.counters()).toMatchObject({ started: 0, completed: 0 });
    expect(stage.names()).toContain("store.error");
    fails.now = false;
    await stage.advance("5s");
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.started", "job.completed"]);
    expect(stage.counters()).toMatchObject({ started: 1, completed: 1 });
  });

  it("a verdict whose reply is lost is recognised, told once and counted once", async () => {
    const plan: FaultPlan = (call, nth) => (call === "commit" && nth <= 3 ? "lose-reply" : undefined);
    const stage = await openOver((store) => faultyStore(store, plan));
    const ends = [
      () => "done",
      () => Promise.reject(new Error("no")),
      () => Promise.reject(new Discard("no")),
    ];
    const { definition, processors } = jobWith(({ payload }) => ends[payload as number]?.(), {
      retry: { attempts: 2 },
    });
    stage.work(processors);
    const jobs = await stage.engine.enqueueMany(definition, [0, 1, 2]);
    await stage.advance("500ms");
    const states = await Promise.all(jobs.map(async (job) => (await stage.load(job)).state));
    expect(states).toEqual(["completed", "retryable", "discarded"]);
    expect(stage.counters()).toMatchObject({ completed: 1, failed: 2, lost: 0, started: 3 });
  });

  it("a start that an extension overtook is told all the same, before the verdict", async () => {
    let onCommit: (() => Promise<void>) | undefined;
    const plan: FaultPlan = (call) => {
      if (call !== "commit" || !onCommit) return undefined;
      const act = onCommit;
      onCommit = undefined;
      return { delay: act };
    };
    const stage = await openOver((store) => faultyStore(store, plan));
    const { definition, processors } = jobWith(() => stage.sleep(600));
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    // While the mark of the start travels, an outsider extends the job and the handler ends.
    onCommit = async () => {
      await stage.engine.extend(job.id, { attempt: "1h" });
      await stage.sleep(500);
    };
    await stage.advance("3s");
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.extended", "job.started", "job.completed"]);
    expect(stage.counters()).toMatchObject({ started: 1, completed: 1 });
  });
});
