import { describe, expect, it } from "vitest";
import type { AttemptContext } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createLatch, type FaultPlan, faultyStore } from "../../src/testing/index.ts";
import { depthOf, logOf } from "../../src/testing/read-store.ts";
import {
  deaf,
  errorOf,
  jobOf,
  jobWith,
  jobWithExpiredClaim,
  obedient,
  openOver,
  openPair,
  openStage,
  openWithJob,
  START,
  silent,
} from "./stage.ts";

describe("5.1 cancel", () => {
  it.each([
    ["scheduled", { delay: "1h" }],
    ["available", {}],
  ] as const)("a job that is %s", async (state, options) => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf(), null, options);
    expect((await stage.load(job)).state).toBe(state);
    const cancelled = await stage.engine.cancel(job.id);
    expect(cancelled).toMatchObject({ state: "cancelled", finishedAt: START, startedAt: null });
    expect(await job.load()).toEqual(cancelled);
    expect(stage.counters().cancelled).toBe(1);
    expect(await errorOf(stage.engine.cancel(job.id))).toMatchObject({ code: "invalid_state" });
  });

  it("a job that waits for its retry can be cancelled", async () => {
    const { stage, job } = await openWithJob(() => Promise.reject(new Error("no")));
    await stage.settle();
    await stage.engine.cancel(job.id);
    await stage.advance("1h");
    expect(await stage.load(job)).toMatchObject({ state: "cancelled", attempt: 1 });
  });

  it("a cancel aborts the running handler at once, and later writes of the handler are refused", async () => {
    const stage = await openStage();
    const heard: unknown[] = [];
    const { definition, processors } = jobWith(async (context) => {
      await obedient(context).catch((reason) => heard.push(reason));
      context.progress(1, "too late");
      context.log("too late");
      const refusal = await errorOf(context.checkpoint({ too: "late" }));
      heard.push(refusal);
      return "too late";
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    await stage.engine.cancel(job.id);
    const row = await stage.load(job);
    await stage.settle();
    expect(heard).toEqual([
      expect.objectContaining({ name: "StopError", kind: "cancelled", elapsed: 10_000 }),
      expect.objectContaining({ name: "StopError" }),
    ]);
    await stage.advance("1m");
    expect(await stage.load(job)).toEqual(row);
    expect(await logOf(stage.engine.store, job.id)).toEqual([]);
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.started", "job.cancelled"]);
    expect(stage.counters()).toMatchObject({ cancelled: 1, completed: 0, failed: 0, stuck: 0 });
  });

  it("a cancel from another engine arrives at once where the store notifies", async () => {
    const pair = await openPair();
    const heardAt: number[] = [];
    const { definition, processors } = jobWith((context) =>
      obedient(context).catch(() => heardAt.push(pair.second.system.monotonic())),
    );
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(5_000);
    await pair.first.engine.cancel(job.id);
    await pair.second.settle();
    expect(heardAt).toEqual([5_000]);
  });

  it.each([
    ["in the middle of a long run", 20_000],
    ["right after an idle worker started it", 100],
    ["a moment later", 600],
  ])(
    "a cancel from another engine arrives within a second where the store does not notify: %s",
    async (_name, runsFor) => {
      const pair = await openPair(silent);
      const heardAt: number[] = [];
      const { definition, processors } = jobWith((context) =>
        obedient(context).catch(() => heardAt.push(pair.second.system.monotonic())),
      );
      pair.second.work(processors);
      await pair.advance(7_300);
      const job = await pair.second.engine.enqueue(definition);
      while ((await pair.second.load(job)).state !== "active") await pair.advance(50);
      await pair.advance(runsFor);
      const cancelledAt = pair.second.system.monotonic();
      await pair.first.engine.cancel(job.id);
      await pair.advance(1_000);
      expect(heardAt).toHaveLength(1);
      expect((heardAt[0] ?? 0) - cancelledAt).toBeLessThanOrEqual(1_000);
    },
  );
});

describe("5.2 shutdown", () => {
  it("during the drain running jobs complete, and no more jobs are claimed", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(10_000));
    const worker = stage.work(processors, { queues: { default: { concurrency: 1 } } });
    const [first, second] = await stage.engine.enqueueMany(definition, [1, 2]);
    await stage.advance("1s");
    let isClosed = false;
    void worker.close().then(() => (isClosed = true));
    await stage.advance("8900ms");
    expect(isClosed).toBe(false);
    expect(worker.status()).toMatchObject({ ready: false, reason: "closing" });
    await stage.advance("200ms");
    expect(isClosed).toBe(true);
    expect((await stage.load(first as { id: string })).state).toBe("completed");
    expect((await stage.load(second as { id: string })).state).toBe("available");
  });

  it.each<[string, (context: AttemptContext) => Promise<unknown>, number]>([
    ["a handler that obeys", obedient, 25_000],
    ["a handler that is deaf", deaf, 30_000],
  ])("%s is aborted after 25 s with reason shutdown, and released without spending", async (_n, run, by) => {
    const stage = await openStage();
    const reasons: unknown[] = [];
    const { definition, processors } = jobWith((context) => {
      context.signal.addEventListener("abort", () =>
        reasons.push([stage.now() - START, context.signal.reason]),
      );
      return run(context);
    });
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    let closedAt = 0;
    void worker.close().then(() => (closedAt = stage.now() - START));
    await stage.advance("40s");
    expect(reasons).toEqual([
      [25_000, expect.objectContaining({ kind: "shutdown", deadline: START + 30_000 })],
    ]);
    expect(closedAt).toBe(by);
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "available", attempt: 0, returns: 1, startedAt: null });
    expect(row.errors).toMatchObject([{ type: "shutdown", code: "shutdown", attempt: 1 }]);
    expect(stage.names(job.id)).toContain("job.released");
    expect(stage.counters()).toMatchObject({ released: 1, failed: 0 });
  });

  it("close() waits no longer than a grace that is shorter than 5 s", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, { timeouts: { grace: "1s" } });
    const worker = stage.work(processors, { drain: "2s" });
    await stage.engine.enqueue(definition);
    await stage.settle();
    let closedAt = 0;
    void worker.close().then(() => (closedAt = stage.now() - START));
    await stage.advance("10s");
    expect(closedAt).toBe(3_000);
  });

  it("after close() no job is claimed and no timer runs, and a second close() changes nothing", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      ({ payload, beat }) => {
        beat();
        return payload === "quick" ? stage.sleep(20) : deaf();
      },
      { timeouts: { heartbeat: "1s" } },
    );
    stage.work(processors, { queues: { default: { concurrency: 3 } } });
    await stage.engine.enqueueMany(definition, new Array(20).fill("quick"));
    await stage.advance("500ms");
    await stage.engine.enqueueMany(definition, new Array(20).fill("deaf"));
    await stage.settle();
    const { store } = stage.engine;
    const close = store.close.bind(store);
    (store as { close: () => Promise<void> }).close = async () => {};
    const first = stage.engine.close({ drain: "0s" });
    const second = stage.engine.close();
    await stage.advance("6s");
    await Promise.all([first, second]);
    const depth = await depthOf(store);
    expect(depth).toMatchObject({ active: 0, completed: 20 });
    expect(stage.system.pendingTimers).toBe(0);
    await close();
    await stage.engine.close();
  });

  it("an engine that is closed refuses to enqueue, to work and to configure", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => null);
    await stage.engine.close();
    expect(await errorOf(stage.engine.enqueue(definition))).toMatchObject({ code: "closed" });
    expect(await errorOf(stage.engine.enqueueMany(definition, [1]))).toMatchObject({ code: "closed" });
    expect(() => stage.engine.work({ processors })).toThrow(expect.objectContaining({ code: "closed" }));
    expect(await errorOf(stage.engine.queues.pause("default"))).toMatchObject({ code: "closed" });
  });

  it("result() rejects when the engine is closed", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf());
    const waiting = errorOf(job.result());
    await stage.advance("3s");
    await stage.engine.close();
    expect(await waiting).toMatchObject({ code: "closed" });
    expect(await errorOf(job.result())).toMatchObject({ code: "closed" });
    expect(stage.system.pendingTimers).toBe(0);
  });

  it("a handler can still enqueue jobs during the drain", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(async ({ enqueue, payload }) => {
      await stage.sleep(5_000);
      if (payload === null) await enqueue(definition, "child");
      return "done";
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition, null);
    await stage.settle();
    const { store } = stage.engine;
    (store as { close: () => Promise<void> }).close = async () => {};
    const closing = stage.engine.close();
    await stage.advance("6s");
    await closing;
    expect((await store.jobs.load([job.id]))[0]).toMatchObject({ state: "completed", errors: null });
    expect(await depthOf(store)).toMatchObject({ available: 1 });
  });

  it("close() waits until a release is decided again after an extension", async () => {
    let onCommit: (() => Promise<unknown>) | undefined;
    const plan: FaultPlan = (call) => {
      if (call !== "commit" || !onCommit) return undefined;
      const act = onCommit;
      onCommit = undefined;
      return { delay: async () => void (await act()) };
    };
    const stage = await openOver((store) => faultyStore(store, plan));
    const { definition, processors } = jobWith(obedient);
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("2s");
    onCommit = () => stage.engine.extend(job.id, { attempt: "2h" });
    const closing = worker.close({ drain: "0s" });
    await stage.advance("1s");
    await closing;
    expect(await stage.load(job)).toMatchObject({ state: "available", attempt: 0, returns: 1 });
  });

  it("a job that is about to be entered is released and not entered", async () => {
    const pair = await openPair();
    const job = await jobWithExpiredClaim(pair);
    const latch = createLatch();
    const slowed = pair.first.engine.store as { commit: typeof commit };
    const { commit } = pair.first.engine.store;
    slowed.commit = async (...args) => {
      slowed.commit = commit;
      await latch.pass();
      return commit(...args);
    };
    let entered = 0;
    const worker = pair.first.work(jobWith(() => void entered++).processors);
    await pair.first.settle();
    await latch.reached();
    const closing = worker.close();
    await pair.first.settle();
    latch.open();
    await pair.first.advance("1s");
    await closing;
    expect(entered).toBe(0);
    expect(await pair.first.load(job)).toMatchObject({ state: "available", attempt: 0 });
  });

  it("close() ends although the store hangs", async () => {
    const hangs = { now: false };
    const plan: FaultPlan = () => (hangs.now ? { delay: () => deaf() } : undefined);
    const stage = await openOver((store) => faultyStore(store, plan));
    const { definition, processors } = jobWith(obedient);
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("2s");
    hangs.now = true;
    let isClosed = false;
    void stage.engine.close({ drain: "1s" }).then(() => (isClosed = true));
    await stage.advance("60s");
    expect(isClosed).toBe(true);
  });

  it("await using closes the worker and the engine", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(1_000));
    const job = await stage.engine.enqueue(definition);
    const closing = (async () => {
      await using worker = stage.engine.work({ processors });
      await stage.settle();
      return worker.status().running;
    })();
    await stage.advance("2s");
    expect(await closing).toBe(1);
    expect((await stage.load(job)).state).toBe("completed");
  });
});

describe("5.4 results and known ids", () => {
  it("result({ within }) rejects the caller, and the job goes on", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(10_000).then(() => 42));
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    const impatient = errorOf(job.result({ within: "5s" }));
    const patient = job.result({ within: "1m" });
    await stage.advance("5s");
    expect(await impatient).toMatchObject({ code: "result_timeout" });
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("5s");
    expect(await patient).toBe(42);
    expect(await job.result()).toBe(42);
  });

  it("an aborted signal rejects the caller with its reason", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf());
    const stop = new AbortController();
    const waiting = errorOf(job.result({ signal: stop.signal }));
    stop.abort(new RangeError("enough"));
    expect(await waiting).toMatchObject({ message: "enough" });
    expect(await errorOf(job.result({ signal: stop.signal }))).toMatchObject({ message: "enough" });
    await stage.advance("2s");
    expect((await stage.load(job)).state).toBe("available");
  });

  it.each([
    ["discarded", () => Promise.reject(new RangeError("no")), "was discarded: no"],
    ["cancelled", deaf, "was cancelled"],
  ])("a job that was %s rejects with the error kept on it", async (state, run, message) => {
    const { stage, job } = await openWithJob(run, { retry: { attempts: 1 } });
    const waiting = errorOf(job.result());
    await stage.settle();
    if (state === "cancelled") await stage.engine.cancel(job.id);
    const error = await waiting;
    expect(error).toMatchObject({ name: "JobFailedError", code: "job_failed", state });
    expect(error.message).toContain(message);
  });

  it("a result from another engine comes with the hint, or with the next poll", async () => {
    for (const wrap of [(store: Store) => store, silent]) {
      const pair = await openPair(wrap);
      const { definition, processors } = jobWith(() => "far away");
      const job = await pair.first.engine.enqueue(definition);
      let result: unknown;
      void job.result().then((value) => (result = value));
      await pair.advance(500);
      pair.second.work(processors);
      await pair.advance(1_500);
      expect(result).toBe("far away");
    }
  });

  it("enqueueing a known id returns the old job as duplicate", async () => {
    const stage = await openStage();
    const id = "01890000-0000-7000-8000-000000000001";
    const first = await stage.engine.enqueue(jobOf(), "old", { id });
    const [second, third] = await Promise.all([
      stage.engine.enqueue(jobOf(), "new", { id }),
      stage.engine.enqueue(jobOf(), "newer", { id, delay: "1h" }),
    ]);
    expect([first.duplicate, second?.duplicate, third?.duplicate]).toEqual([false, true, true]);
    expect([second?.id, (await stage.load({ id })).payload]).toEqual([id, '"old"']);
    expect(stage.counters().enqueued).toBe(1);
    expect(stage.names().filter((name) => name === "job.enqueued")).toHaveLength(1);
  });
});
