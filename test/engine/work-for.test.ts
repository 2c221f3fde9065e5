import { describe, expect, it } from "vitest";
import { defineJob, processor, type WorkForSummary } from "../../src/index.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { createLatch, faultyStore } from "../../src/testing/index.ts";
import { diary } from "./saga-stage.ts";
import { deaf, errorOf, jobOf, jobWith, openStage, START, type Stage } from "./stage.ts";

/** Runs `workFor` under virtual time, and says when it ended, in milliseconds after its call. */
async function run(
  stage: Stage,
  call: () => Promise<WorkForSummary>,
  limit = 60_000,
): Promise<WorkForSummary & { readonly endedAt: number }> {
  const from = stage.now();
  let ended: (WorkForSummary & { readonly endedAt: number }) | undefined;
  const called = call().then((summary) => {
    ended = { ...summary, endedAt: stage.now() - from };
  });
  for (let passed = 0; ended === undefined && passed < limit; passed += 1_000) await stage.advance("1s");
  await called;
  if (!ended) throw new Error("workFor did not end");
  return ended;
}

describe("5.6 workFor", () => {
  it("runs what is due and ends at once when the queues are empty", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(100), {}, "mail.send");
    await stage.engine.enqueueMany(definition, [null, null, null] as never);
    await stage.engine.enqueue(definition, undefined, { delay: "1h" });
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(summary).toEqual({
      done: 3,
      failed: 0,
      released: 0,
      skipped: 0,
      left: 1,
      stopped: "empty",
      elapsed: 100,
      endedAt: 100,
    });
    expect(stage.names()).toContain("worker.stopped");
  });

  it("ends at once, at the instant of the call, when there is nothing to do", async () => {
    const stage = await openStage();
    const { processors } = jobWith(() => {});
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(summary).toMatchObject({ done: 0, left: 0, stopped: "empty", endedAt: 0 });
  });

  it("runs jobs that its own jobs enqueue into another of its queues", async () => {
    const stage = await openStage();
    const second = defineJob({ type: "second", queue: "other" });
    const first = defineJob({ type: "first" });
    const processors = [
      processor(first, async ({ enqueue }) => void (await enqueue(second, undefined))),
      processor(second, () => {}),
    ];
    await stage.engine.enqueue(first);
    expect(await run(stage, () => stage.engine.workFor({ processors, within: "50s" }))).toMatchObject({
      done: 2,
      stopped: "empty",
      endedAt: 0,
    });
  });

  it("promotes jobs and fires crons that fell due while nothing ran", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => {}, {}, "report.send");
    await stage.engine.enqueue(definition, undefined, { delay: "10m" });
    await stage.engine.crons.put("hourly", { job: definition, cron: "0 * * * *" });
    stage.system.pause(3_600_000);
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(summary).toMatchObject({ done: 2, stopped: "empty" });
  });

  it("delivers due messages of hosted sagas, and the jobs that they enqueue", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => {}, {}, "ship");
    const order = diary((saga) => void saga.enqueue(definition, undefined)).saga;
    stage.engine.host([order]);
    await stage.engine.send(order, "begun", { id: "1", text: "" });
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(summary).toMatchObject({ done: 1, stopped: "empty" });
  });

  it("aborts running handlers 7 s before the end, and releases their jobs unspent", async () => {
    const stage = await openStage();
    const heardAt: number[] = [];
    const { definition, processors } = jobWith(({ signal }) => {
      signal.addEventListener("abort", () => heardAt.push(stage.now() - START));
      return deaf();
    });
    const job = await stage.engine.enqueue(definition);
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(heardAt).toEqual([43_000]);
    expect(summary).toMatchObject({ done: 0, released: 1, left: 1, stopped: "time", endedAt: 48_000 });
    expect(await stage.load(job)).toMatchObject({ state: "available", attempt: 0 });
  });

  it("does not start a job whose named attempt would end after the abort", async () => {
    const stage = await openStage();
    const startedAt: number[] = [];
    const handler = async () => {
      startedAt.push(stage.now() - START);
      await stage.sleep(4_000);
    };
    const { definition, processors } = jobWith(handler, { timeouts: { attempt: "10s" } });
    await stage.engine.enqueueMany(definition, Array.from({ length: 20 }, () => null) as never);
    const summary = await run(stage, () =>
      stage.engine.workFor({ processors, queues: { default: { concurrency: 1 } }, within: "30s" }),
    );
    // 23 s until the abort: a job that may take 10 s starts at 12 s at the latest.
    expect(startedAt).toEqual([0, 4_000, 8_000, 12_000]);
    expect(summary).toMatchObject({ done: 4, failed: 0, released: 0, left: 16, stopped: "time" });
    expect(summary.skipped).toBeGreaterThanOrEqual(16);
    expect(summary.endedAt).toBe(16_000);
  });

  it("counts a job without a named attempt as the longest run of its type in this call", async () => {
    const stage = await openStage();
    const startedAt: number[] = [];
    const { definition, processors } = jobWith(async () => {
      startedAt.push(stage.now() - START);
      await stage.sleep(9_000);
    });
    await stage.engine.enqueueMany(definition, [null, null, null, null, null] as never);
    const summary = await run(stage, () =>
      stage.engine.workFor({ processors, queues: { default: { concurrency: 1 } }, within: "30s" }),
    );
    expect(startedAt).toEqual([0, 9_000]);
    expect(summary).toMatchObject({ done: 2, released: 0, left: 3, stopped: "time", endedAt: 18_000 });
  });

  it("a job that cannot fit delays neither the jobs behind it nor the end", async () => {
    const stage = await openStage();
    const long = jobWith(() => {}, { timeouts: { attempt: "10m" } }, "long");
    const short = jobWith(() => {}, {}, "short");
    const first = await stage.engine.enqueue(long.definition);
    await stage.engine.enqueue(short.definition);
    const processors = [...long.processors, ...short.processors];
    const summary = await run(stage, () =>
      stage.engine.workFor({ processors, queues: { default: { concurrency: 1 } }, within: "50s" }),
    );
    expect(summary).toMatchObject({ done: 1, skipped: 1, left: 1, stopped: "time", endedAt: 0 });
    expect(await stage.load(first)).toMatchObject({ state: "scheduled", attempt: 0 });
    stage.work(processors);
    await stage.advance("10s");
    expect((await stage.load(first)).state).toBe("completed");
  });

  it("leaves a queue after 1,000 jobs that do not fit", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => {}, { timeouts: { attempt: "10m" } });
    await stage.engine.enqueueMany(definition, Array.from({ length: 1_200 }, () => null) as never);
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(summary).toMatchObject({ done: 0, left: 1_200, stopped: "time", endedAt: 0 });
    expect(summary.skipped).toBe(1_000);
    expect((await stage.engine.queues.depth("default")).active).toBe(0);
  });

  it("counts failed attempts, and leaves their retries to a later call", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => Promise.reject(new Error("no")));
    await stage.engine.enqueue(definition);
    const summary = await run(stage, () => stage.engine.workFor({ processors, within: "50s" }));
    expect(summary).toMatchObject({ done: 0, failed: 1, left: 1, stopped: "empty", endedAt: 0 });
  });

  it("with until: time, it works until the abort", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => {});
    const call = run(stage, () => stage.engine.workFor({ processors, until: "time", within: "20s" }));
    await stage.engine.enqueue(definition, undefined, { delay: "12s" });
    expect(await call).toMatchObject({ done: 1, left: 0, stopped: "time", endedAt: 13_000 });
  });

  it("a paused queue and a maintenance count as empty", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => {});
    await stage.engine.enqueue(definition);
    await stage.engine.queues.pause("default");
    const work = () => stage.engine.workFor({ processors, within: "50s" });
    expect(await run(stage, work)).toMatchObject({ done: 0, left: 1, stopped: "empty", endedAt: 0 });
    await stage.engine.queues.resume("default");
    await stage.engine.maintenance.begin({ reason: "move" });
    expect(await run(stage, work)).toMatchObject({ done: 0, left: 1, stopped: "empty" });
  });

  it("ends when the engine is closed meanwhile", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => deaf());
    await stage.engine.enqueue(definition);
    const call = stage.engine.workFor({ processors, within: "50s" });
    await stage.advance("1s");
    const closing = stage.engine.close({ drain: "0s" });
    await stage.advance("10s");
    await closing;
    expect(await call).toMatchObject({ done: 0, released: 1, left: null, stopped: "closed" });
  });

  it("two calls at once share the work and run no job twice", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(50));
    await stage.engine.enqueueMany(definition, Array.from({ length: 40 }, () => null) as never);
    const work = () => stage.engine.workFor({ processors, within: "50s" });
    const [first, second] = await Promise.all([run(stage, work), run(stage, work)]);
    expect(first.done + second.done).toBe(40);
    expect(stage.counters().started).toBe(40);
  });

  it("ends in time when the store stops answering", async () => {
    const latch = createLatch();
    let isHanging = false;
    const stage = await openStage({
      store: (clock) =>
        faultyStore(createMemoryStore({ clock }), () =>
          isHanging ? { delay: () => latch.pass() } : undefined,
        ),
    });
    const { definition, processors } = jobWith(() => deaf());
    await stage.engine.enqueue(definition);
    const call = run(stage, () => stage.engine.workFor({ processors, within: "30s" }));
    await stage.settle();
    isHanging = true;
    const summary = await call;
    expect(summary).toMatchObject({ done: 0, left: null, stopped: "time" });
    expect(summary.endedAt).toBeLessThanOrEqual(30_000);
    isHanging = false;
    latch.open();
  });

  it.each([
    [{ within: "9s" }, "workFor.within"],
    [{ within: "soon" }, "workFor.within"],
    [{ within: "50s", until: "later" }, "workFor.until"],
    [{ within: "50s", drain: "1s" }, "drain"],
    [{ within: "50s", processors: [] }, "processors"],
  ])("refuses %j", async (options, field) => {
    const stage = await openStage();
    const processors = [processor(jobOf(), () => {})];
    const error = await errorOf(stage.engine.workFor({ processors, ...options } as never));
    expect(error).toMatchObject({ name: "CurfewError", message: expect.stringContaining(field) });
  });
});
