import { describe, expect, it } from "vitest";
import type { Store } from "../../src/ports/store.ts";
import { createLatch, type Fault, type FaultPlan, faultyStore } from "../../src/testing/index.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { errorOf, jobOf, jobWith, openOver, openStage, START } from "./stage.ts";

/** A store whose calls of one kind are counted and may be made to wait. */
function counting(call: "enqueue" | "claim", before: () => Promise<void> = async () => {}) {
  const sizes: number[] = [];
  const jobsOf = (inner: Store) => ({
    ...inner.jobs,
    enqueue: async (...args: Parameters<Store["jobs"]["enqueue"]>) => {
      if (call === "enqueue") {
        sizes.push(args[0].length);
        await before();
      }
      return inner.jobs.enqueue(...args);
    },
    claim: async (...args: Parameters<Store["jobs"]["claim"]>) => {
      const rows = await inner.jobs.claim(...args);
      if (call === "claim") sizes.push(rows.length);
      return rows;
    },
  });
  return { sizes, open: () => openOver((inner) => ({ ...inner, jobs: jobsOf(inner) })) };
}

/** An engine whose store fails as it is told to. */
function openFailing(plan: FaultPlan) {
  return openOver((store) => faultyStore(store, plan));
}

describe("enqueue shares store calls", () => {
  it("enqueues made during a store call share the next one", async () => {
    const latch = createLatch();
    const { open, sizes } = counting("enqueue", () => latch.pass());
    const stage = await open();
    const first = stage.engine.enqueue(jobOf(), 0);
    await latch.reached();
    const rest = Array.from({ length: 50 }, (_, nth) => stage.engine.enqueue(jobOf(), nth));
    await stage.settle();
    expect(sizes).toEqual([1]);
    latch.open();
    const handles = await Promise.all([first, ...rest]);
    expect(sizes).toEqual([1, 50]);
    expect(new Set(handles.map(({ id }) => id)).size).toBe(51);
  });

  it("enqueues of one turn share a store call, and each gets its own answer", async () => {
    const { open, sizes } = counting("enqueue");
    const stage = await open();
    const id = "01890000-0000-7000-8000-000000000001";
    const handles = await Promise.all([
      stage.engine.enqueue(jobOf(), 1, { id }),
      stage.engine.enqueue(jobOf(), 2, { id }),
      stage.engine.enqueue(jobOf(), 3),
    ]);
    expect(sizes).toEqual([3]);
    expect(handles.map(({ duplicate }) => duplicate)).toEqual([false, true, false]);
  });

  it("a bad enqueue among them fails alone", async () => {
    const { open, sizes } = counting("enqueue");
    const stage = await open();
    const [good, bad] = await Promise.allSettled([
      stage.engine.enqueue(jobOf(), 1),
      stage.engine.enqueue(jobOf(), 2, { priority: 1_000 }),
    ]);
    expect([good?.status, bad?.status]).toEqual(["fulfilled", "rejected"]);
    expect(sizes).toEqual([1]);
  });

  it("5,000 jobs are stored in batches within the store's limit, in their order", async () => {
    const { open, sizes } = counting("enqueue");
    const stage = await open();
    const handles = await stage.engine.enqueueMany(
      jobOf(),
      Array.from({ length: 5_000 }, (_, nth) => nth),
    );
    expect(sizes).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
    const ids = handles.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(stage.counters().enqueued).toBe(5_000);
  });
});

describe("enqueue and a store that fails", () => {
  async function failing(fault: Fault, times: number) {
    return openFailing((call, nth) => (call === "jobs.enqueue" && nth <= times ? fault : undefined));
  }

  it.each<[string, Fault]>([
    ["that drops the call", "drop"],
    ["whose reply is lost", "lose-reply"],
  ])("tries again under the same ids and never doubles a job: one %s", async (_name, fault) => {
    const stage = await failing(fault, 2);
    const enqueueing = stage.engine.enqueueMany(jobOf(), [1, 2, 3]);
    await stage.advance("2s");
    const handles = await enqueueing;
    expect(handles.map(({ duplicate }) => duplicate)).toEqual([false, false, false]);
    expect(await depthOf(stage.engine.store)).toMatchObject({ available: 3 });
    expect(stage.counters().enqueued).toBe(3);
    expect(stage.names().filter((name) => name === "store.error")).toHaveLength(2);
    expect(stage.told("store.error")).toMatchObject({ during: "enqueue" });
  });

  it("gives up after four tries, and the caller may try again with the same id", async () => {
    const stage = await failing("lose-reply", 4);
    const id = "01890000-0000-7000-8000-000000000001";
    const enqueueing = errorOf(stage.engine.enqueue(jobOf(), null, { id }));
    await stage.advance("5s");
    expect(await enqueueing).toMatchObject({ code: "store_failed", cause: expect.any(Error) });
    expect((await stage.engine.enqueue(jobOf(), null, { id })).duplicate).toBe(true);
  });
});

describe("claims and a store that fails (3.1, 3.10)", () => {
  it("the claim loop logs the failure and claims again when the store is back", async () => {
    const fails = { now: true };
    const stage = await openFailing((call) => (fails.now && call === "jobs.claim" ? "drop" : undefined));
    const { definition, processors } = jobWith(() => "done");
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    expect(worker.status()).toMatchObject({ ready: false, reason: expect.stringContaining("default") });
    const errors = stage.names().filter((name) => name === "store.error").length;
    expect(errors).toBeGreaterThan(5);
    expect(errors).toBeLessThan(40);
    expect(stage.told("store.error")).toMatchObject({ during: "claim", error: expect.any(Error) });
    fails.now = false;
    await stage.advance("10s");
    expect((await stage.load(job)).state).toBe("completed");
    expect(worker.status().ready).toBe(true);
  });

  it("a claim whose reply is lost expires with its lease, and its jobs come back", async () => {
    const lost = { now: false };
    const stage = await openFailing((call) => (lost.now && call === "jobs.claim" ? "lose-reply" : undefined));
    const { definition, processors } = jobWith(() => "done");
    lost.now = true;
    const job = await stage.engine.enqueue(definition);
    stage.work(processors);
    await stage.settle();
    lost.now = false;
    await stage.advance("12s");
    expect(await stage.load(job)).toMatchObject({ state: "completed", expiredClaims: 1, attempt: 1 });
  });

  it.each(["jobs.sweep", "jobs.beat", "jobs.prune", "records.list", "jobs.load", "clock"] as const)(
    "a failing %s is reported or outlived, and the engine goes on",
    async (name) => {
      const fails = { now: false };
      const stage = await openFailing((call) => (fails.now && call === name ? "drop" : undefined));
      const { definition, processors } = jobWith(() => stage.sleep(2_000));
      stage.work(processors);
      fails.now = true;
      await stage.advance("40s");
      fails.now = false;
      const job = await stage.engine.enqueue(definition, null, { delay: "1s" });
      await stage.advance("20s");
      expect((await stage.load(job)).state).toBe("completed");
    },
  );
});

describe("the order of work", () => {
  it("higher priorities first, then first come first served", async () => {
    const stage = await openStage();
    const order: unknown[] = [];
    const { definition, processors } = jobWith(async ({ payload }) => {
      order.push(payload);
      await stage.sleep(200);
    });
    await stage.engine.enqueue(definition, "normal 1");
    await stage.engine.enqueue(definition, "low", { priority: -10 });
    await stage.advance("1s");
    await stage.engine.enqueue(definition, "high", { priority: 10 });
    await stage.engine.enqueueMany(definition, ["normal 2", "normal 3"]);
    stage.work(processors, { queues: { default: { concurrency: 1 } } });
    await stage.advance("3s");
    expect(order).toEqual(["high", "normal 1", "normal 2", "normal 3", "low"]);
  });

  it("jobs run after their delay or at their time, and at once if that has passed", async () => {
    const stage = await openStage();
    const order: unknown[] = [];
    const { definition, processors } = jobWith(
      ({ payload }) => void order.push([payload, stage.now() - START]),
    );
    stage.work(processors);
    await stage.engine.enqueue(definition, "at", { at: new Date(START + 20_000) });
    await stage.engine.enqueue(definition, "delay", { delay: "10s" });
    await stage.engine.enqueue(definition, "past", { at: "2020-01-01T00:00:00Z" });
    expect(stage.names().filter((name) => name !== "worker.started")).toEqual([
      "job.scheduled",
      "job.scheduled",
      "job.enqueued",
    ]);
    await stage.advance("30s");
    expect(order.map((entry) => (entry as [string, number])[0])).toEqual(["past", "delay", "at"]);
    const [past, delay, at] = order.map((entry) => (entry as [string, number])[1]) as [
      number,
      number,
      number,
    ];
    expect([past, Math.floor(delay / 100), Math.floor(at / 100)]).toEqual([0, 100, 200]);
  });

  it("each queue has its own concurrency", async () => {
    const stage = await openStage();
    const peak = { mail: 0, money: 0 };
    const running = { mail: 0, money: 0 };
    const { definition, processors } = jobWith(async ({ queue }) => {
      const name = queue as "mail";
      running[name] += 1;
      peak[name] = Math.max(peak[name], running[name]);
      await stage.sleep(100);
      running[name] -= 1;
    });
    stage.work(processors, { queues: { mail: { concurrency: 3 }, money: { concurrency: 1 } } });
    for (const queue of ["mail", "money"])
      await stage.engine.enqueueMany(definition, new Array(12).fill(null), { queue });
    await stage.advance("10s");
    expect(peak).toEqual({ mail: 3, money: 1 });
    expect(stage.counters().completed).toBe(24);
  });

  it("pause stops claims from a queue in all engines, resume lets them go on", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => "done");
    stage.work(processors);
    await stage.engine.queues.pause("default");
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1h");
    expect((await stage.load(job)).state).toBe("available");
    await stage.engine.queues.pause("default");
    await stage.engine.queues.resume("default");
    await stage.settle();
    expect((await stage.load(job)).state).toBe("completed");
    await stage.engine.queues.resume("default");
  });

  it("a job of an unknown type is given back with a delay and an event, never in a hot loop", async () => {
    const { open, sizes } = counting("claim");
    const stage = await open();
    const { processors } = jobWith(() => "done");
    const old = stage.work(processors);
    const job = await stage.engine.enqueue(jobOf({}, "new.type"));
    await stage.advance("1m");
    const claims = sizes.filter((size) => size > 0).length;
    expect(claims).toBeGreaterThanOrEqual(9);
    expect(claims).toBeLessThanOrEqual(17);
    expect(sizes.length).toBeLessThan(150);
    expect(stage.names(job.id).filter((name) => name === "job.unknown_type")).toHaveLength(claims);
    expect(await stage.load(job)).toMatchObject({ attempt: 0, returns: 0, expiredClaims: 0, errors: null });
    await old.close();
    stage.work(jobWith(() => "done", {}, "new.type").processors);
    await stage.advance("10s");
    expect((await stage.load(job)).state).toBe("completed");
  });
});
