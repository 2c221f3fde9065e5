import { describe, expect, it } from "vitest";
import { createLatch, type FaultPlan, faultyStore } from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { jobWith, openOver, openUnsure, type Stage } from "./stage.ts";

describe("5.2 jobs that are claimed but not entered when the worker closes", () => {
  it("jobs whose claims were being confirmed are released", async () => {
    const [running, confirming] = [createLatch(), createLatch()];
    const isSlow = { beat: false, handler: false };
    const plan: FaultPlan = (call) =>
      isSlow.beat && call === "jobs.beat" ? { delay: () => confirming.pass() } : undefined;
    const stage: Stage = await openOver((store) => faultyStore(store, plan));
    let entered = 0;
    const { definition, processors } = jobWith(() => {
      entered += 1;
      return isSlow.handler ? running.pass() : stage.sleep(20);
    });
    const worker = stage.work(processors, { queues: { default: { concurrency: 1 } } });
    await stage.engine.enqueueMany(definition, [1, 2, 3]);
    await stage.advance("1s");
    isSlow.handler = true;
    const jobs = await stage.engine.enqueueMany(definition, [4, 5, 6]);
    // Too long since the claim was certain: the next slot asks before it enters.
    await stage.advance("400ms");
    expect(worker.status()).toMatchObject({ running: 1, held: 2 });
    isSlow.beat = true;
    running.open();
    await stage.settle();
    await confirming.reached();
    const closing = worker.close();
    await stage.settle();
    confirming.open();
    await stage.advance("1s");
    await closing;
    expect(entered).toBe(4);
    const states = await Promise.all(jobs.map(async (job) => (await stage.load(job)).state));
    expect(states).toEqual(["completed", "available", "available"]);
  });

  it("a job that waits because its deadline is too close is released and never entered", async () => {
    const { engine, system } = await openUnsure(300);
    let entered = 0;
    const { definition, processors } = jobWith(() => void entered++, { timeouts: { total: "1s" } });
    const worker = engine.work({ processors });
    await engine.queues.pause("default");
    const { id } = await engine.enqueue(definition);
    await system.advance(1_150);
    await engine.queues.resume("default");
    await system.advance(10);
    expect(await rowOf(engine.store, id)).toMatchObject({ state: "active", startedAt: null });
    const closing = worker.close();
    await system.advance(100);
    await closing;
    expect((await rowOf(engine.store, id))?.state).toBe("available");
    await system.advance(2_000);
    expect(await rowOf(engine.store, id)).toMatchObject({ state: "discarded", attempt: 0 });
    expect(entered).toBe(0);
  });

  it("jobs whose claim was answered while the process stood still are released", async () => {
    const answered = createLatch();
    const stage: Stage = await openOver((store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        claim: async (request) => {
          const rows = await store.jobs.claim(request);
          if (rows.length > 0) await answered.pass();
          return rows;
        },
      },
    }));
    let entered = 0;
    const { definition, processors } = jobWith(() => void entered++);
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    await answered.reached();
    const closing = worker.close({ drain: "0s" });
    await stage.settle();
    // The timers of the process come first when it goes on, and the answer after them.
    stage.system.pause(3_000);
    await stage.advance("0ms");
    answered.open();
    await stage.advance("1s");
    await closing;
    expect((await stage.load(job)).state).toBe("available");
    expect(entered).toBe(0);
  });
});
