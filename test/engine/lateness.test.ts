import { describe, expect, it } from "vitest";
import { LATENESS_BOUNDS, type PolicyOptions } from "../../src/index.ts";
import { jobWith, obedient, openStage, openWithJob } from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };

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
    const { stage, job } = await openWithJob(obedient, { ...once, timeouts: { attempt: "10s" } });
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
