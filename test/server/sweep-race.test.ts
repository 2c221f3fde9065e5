import { describe, expect, it } from "vitest";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { createLatch, type Latch } from "../../src/testing/latch.ts";
import { openStage } from "./stage.ts";

/** Calls of the store that wait at a latch, once it is set. */
interface Gates {
  sweep?: Latch;
  commit?: Latch;
  claimed?: Latch;
}

function openGated(gates: Gates) {
  const store = (clock: () => number): Store => {
    const inner = createMemoryStore({ clock });
    const { jobs } = inner;
    return {
      ...inner,
      commit: async (...call) => {
        await gates.commit?.pass();
        return inner.commit(...call);
      },
      jobs: {
        ...jobs,
        sweep: async (request) => {
          await gates.sweep?.pass();
          return jobs.sweep(request);
        },
        claim: async (request) => {
          const rows = await jobs.claim(request);
          await gates.claimed?.pass();
          return rows;
        },
      },
    };
  };
  return openStage({ store });
}

describe("a fetch that does not wait", () => {
  it("finds a job that is due although the sweep that promotes it is slow", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    const { id } = await stage.enqueue({ retry: { initial_interval: "PT1S", jitter: false } });
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
    gates.sweep = createLatch();
    await stage.advance("1s");
    const fetching = stage.fetch();
    await gates.sweep.reached();
    for (let turns = 0; turns < 20; turns++) await stage.test.settle();
    gates.sweep.open();
    expect(await fetching).toMatchObject({ id, attempt: 2 });
  });

  it("waits for the decision on a step of a workflow whose turn it is", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    const steps = ["first", "second"].map((name) => ({
      type: `step.${name}`,
      args: [],
      options: { queue: "default" },
    }));
    await stage.post("/workflows", { type: "chain", steps });
    const { id } = await stage.fetch();
    gates.sweep = createLatch();
    await stage.post("/workers/ack", { job_id: id });
    await gates.sweep.reached();
    gates.commit = createLatch();
    const fetching = stage.fetch();
    gates.sweep.open();
    await gates.commit.reached();
    for (let turns = 0; turns < 20; turns++) await stage.test.settle();
    gates.commit.open();
    expect(await fetching).toMatchObject({ type: "step.second" });
  });

  it("waits for the decision on a job that comes to its limit", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    const rate_limit = { key: "k", concurrency: 1 };
    const { id } = await stage.enqueue({ rate_limit, retry: { initial_interval: "PT1S", jitter: false } });
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
    gates.sweep = createLatch();
    await stage.advance("1s");
    await gates.sweep.reached();
    gates.commit = createLatch();
    const fetching = stage.fetch();
    gates.sweep.open();
    await gates.commit.reached();
    for (let turns = 0; turns < 20; turns++) await stage.test.settle();
    gates.commit.open();
    expect(await fetching).toMatchObject({ id, attempt: 2 });
  });

  it("finds a job that is due although the sweep is busy with other deadlines", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    const { id: ending } = await stage.enqueue({ queue: "other", enqueue_ttl: 1 });
    const { id } = await stage.enqueue({ scheduled_at: new Date(stage.test.now() + 1_500).toISOString() });
    const ended = createLatch();
    gates.commit = ended;
    await stage.advance("1s");
    await ended.reached();
    await stage.advance("500ms");
    // The commit of the sweep still waits; the start of the fetched job does not.
    delete gates.commit;
    expect(await stage.fetch()).toMatchObject({ id });
    ended.open();
    await stage.test.settle();
    expect(await stage.job(ending)).toMatchObject({ state: "discarded" });
  });

  it("asks the store once if nothing is due", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    await stage.enqueue({ scheduled_at: new Date(stage.test.now() + 60_000).toISOString() });
    gates.sweep = createLatch();
    expect(await stage.fetch()).toBeUndefined();
    gates.sweep.open();
  });
});

describe("a fetch that waits", () => {
  it("hears of a job that was stored while its claim was under way", async () => {
    const gates: Gates = { claimed: createLatch() };
    await using stage = await openGated(gates);
    let fetched: unknown;
    const fetching = stage.engine.service.fetch({
      queues: ["default"],
      count: 1,
      hears: false,
      wait: 30_000,
    });
    void fetching.then((rows) => {
      fetched = rows;
    });
    const { claimed } = gates;
    // Fetches of one turn of the event loop share a claim, which is sent at the end of the turn.
    await stage.test.settle();
    await claimed?.reached();
    const { id } = await stage.enqueue();
    delete gates.claimed;
    claimed?.open();
    // No time passes here, so only the hint can wake the fetch.
    for (let turns = 0; turns < 20 && fetched === undefined; turns++) await stage.test.settle();
    expect(fetched).toMatchObject([{ id }]);
  });
});

describe("4.3 a sweep on a server", () => {
  it("a checkpoint that comes while a sweep judges the job does not put off its next deadline", async () => {
    let onSweep: (() => Promise<unknown>) | undefined;
    await using stage = await openStage({
      store: (clock) => {
        const store = createMemoryStore({ clock });
        const { jobs } = store;
        // Between the sweep that takes a row and the verdict on it, somebody else writes.
        const sweep: typeof jobs.sweep = async (request) => {
          const swept = await jobs.sweep(request);
          if (swept.jobs.length > 0) await onSweep?.();
          return swept;
        };
        return { ...store, jobs: { ...jobs, sweep } };
      },
    });
    const { id } = await stage.enqueue({ heartbeat_timeout: 2, timeout: 60 });
    await stage.fetch();
    onSweep = async () => {
      onSweep = undefined;
      expect(await stage.engine.service.notes.checkpoint(id, {}, { page: 1 })).toMatchObject({ ok: true });
    };
    await stage.advance("2s");
    expect(await stage.job(id)).toMatchObject({ state: "active", checkpoint: { state: { page: 1 } } });
    await stage.advance("2500ms");
    expect(await stage.job(id)).toMatchObject({ error: { type: "stalled" } });
  });
});

describe("a look at a workflow", () => {
  const STEPS = ["first", "second", "third"].map((name) => ({
    type: `step.${name}`,
    args: [],
    options: { queue: "default", retry: { max_attempts: 1 } },
  }));

  it("shows that it is completed as soon as its last step is, although the sweep is slow", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    const { id: workflow } = (await stage.post("/workflows", { type: "chain", steps: STEPS.slice(0, 1) }))
      .body;
    const { id } = await stage.fetch();
    gates.sweep = createLatch();
    await stage.post("/workers/ack", { job_id: id });
    const seen = (await stage.get(`/workflows/${workflow}`)).body.workflow;
    expect(seen).toMatchObject({ state: "completed", steps_completed: 1 });
    gates.sweep.open();
    await stage.advance("1s");
    expect((await stage.get(`/workflows/${workflow}`)).body.workflow).toEqual(seen);
  });

  it("shows that it has failed as soon as one step of its chain has, and cancels the rest", async () => {
    const gates: Gates = {};
    await using stage = await openGated(gates);
    const { id: workflow } = (await stage.post("/workflows", { type: "chain", steps: STEPS })).body;
    const { id } = await stage.fetch();
    gates.sweep = createLatch();
    await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
    const seen = (await stage.get(`/workflows/${workflow}`)).body.workflow;
    expect(seen).toMatchObject({ state: "failed", jobs_failed: 1, jobs_cancelled: 2 });
    gates.sweep.open();
    await stage.advance("1s");
    expect((await stage.get(`/workflows/${workflow}`)).body.workflow).toMatchObject({ state: "failed" });
  });
});
