import { describe, expect, it } from "vitest";
import { Discard } from "../../src/index.ts";
import { type FaultPlan, faultyStore } from "../../src/testing/index.ts";
import { jobWith, obedient, openOver, openStage } from "./stage.ts";

describe("3.12 events follow the commit that they report", () => {
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

  it("a failed commit announces nothing until it has succeeded", async () => {
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

  it("a verdict whose reply is lost is recognised, announced once and counted once", async () => {
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

  it("a start whose commit an extension overtook is announced before the verdict", async () => {
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
