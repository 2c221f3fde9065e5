import { describe, expect, it } from "vitest";
import { defineJob, processor, QueueFullError, unchecked } from "../../src/index.ts";
import { createSimSystem } from "../../src/testing/index.ts";
import { depthOf, rowOf } from "../../src/testing/read-store.ts";
import { errorOf, jobOf, jobWith, openPair, openStage, START, type Stage, shared, storeOn } from "./stage.ts";

const job = defineJob({ type: "test.job", payload: unchecked<string>() });

const slots = (concurrency: number) => ({ queues: { default: { concurrency } } });

/** What a remote worker is given. */
async function fetchFrom(stage: Stage, count: number) {
  const fetching = stage.engine.service.fetch({ queues: ["default"], count, worker: "w", hears: true });
  await stage.settle();
  return fetching;
}

async function statesOf(stage: Stage, jobs: readonly { id: string }[]): Promise<string[]> {
  return Promise.all(jobs.map(async (one) => (await stage.load(one)).state));
}

describe("priority", () => {
  it("runs jobs from priority 100 to -100, and by arrival within a priority", async () => {
    const stage = await openStage();
    const order: string[] = [];
    const priorities = [0, 100, -100, 7, 7, 0, -1, 100];
    for (const [index, priority] of priorities.entries())
      await stage.engine.enqueue(job, `${priority}:${index}`, { priority });
    stage.work([processor(job, ({ payload }) => void order.push(payload))], slots(1));
    await stage.advance("1s");
    expect(order).toEqual(["100:1", "100:7", "7:3", "7:4", "0:0", "0:5", "-1:6", "-100:2"]);
  });

  it("comes from the definition if an enqueue names none", async () => {
    const stage = await openStage();
    const urgent = defineJob({ type: "test.urgent", priority: 50 });
    const row = await stage.load(await stage.engine.enqueue(urgent));
    expect(row.priority).toBe(50);
    const error = await errorOf(stage.engine.enqueue(urgent, null, { priority: 101 }));
    expect(error.message).toMatch(/options\.priority: 101 .* from -100/);
  });
});

describe("pause and resume", () => {
  it("a paused queue accepts jobs and hands none out, and announces pause and resume", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => "done");
    stage.work(processors);
    await stage.engine.queues.pause("default");
    const one = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    expect((await stage.load(one)).state).toBe("available");
    expect((await stage.engine.queues.describe("default")).pausedAt).toBe(START);
    await stage.engine.queues.resume("default");
    await stage.settle();
    expect((await stage.load(one)).state).toBe("completed");
    expect(stage.names().filter((name) => name.startsWith("queue."))).toEqual([
      "queue.paused",
      "queue.resumed",
    ]);
  });

  it("a resume reaches workers of other processes at once", async () => {
    const pair = await openPair();
    const { definition, processors } = jobWith(() => "done");
    pair.second.work(processors);
    await pair.first.engine.queues.pause("default");
    const one = await pair.first.engine.enqueue(definition);
    await pair.advance(500);
    await pair.first.engine.queues.resume("default");
    await pair.second.settle();
    expect((await pair.first.load(one)).state).toBe("completed");
  });
});

describe("concurrency of a queue", () => {
  it("holds over all workers and types, and for jobs that waited before it was set", async () => {
    const pair = await openPair();
    const counts = { running: 0, most: 0 };
    const run = async ({ stage }: { stage: Stage }) => {
      counts.running += 1;
      counts.most = Math.max(counts.most, counts.running);
      await stage.sleep(300);
      counts.running -= 1;
    };
    const other = jobOf({}, "test.other");
    for (const definition of [job, other] as const)
      await pair.first.engine.enqueueMany(definition as typeof job, new Array(15).fill("x"));
    await pair.first.engine.queues.configure("default", { concurrency: 4 });
    await pair.advance(6_000);
    for (const stage of [pair.first, pair.second]) {
      stage.work([processor(job, () => run({ stage })), processor(other, () => run({ stage }))], slots(10));
    }
    await pair.advance(20_000);
    expect(counts).toEqual({ running: 0, most: 4 });
    expect((await pair.first.engine.queues.depth("default")).completed).toBe(30);
  });

  it("starts the next job as soon as one has ended, without waiting for a poll", async () => {
    const stage = await openStage();
    const starts: number[] = [];
    await stage.engine.queues.configure("default", { concurrency: 1 });
    const run = async () => {
      starts.push(stage.now() - START);
      await stage.sleep(100);
    };
    stage.work([processor(job, run)], slots(10));
    await stage.engine.enqueueMany(job, [..."abcde"]);
    await stage.advance("2s");
    expect(starts).toEqual([0, 100, 200, 300, 400]);
  });

  it("works together with a limit by key", async () => {
    const stage = await openStage();
    const counts = { running: 0, most: 0 };
    const keyed = defineJob({
      type: "test.keyed",
      payload: unchecked<string>(),
      limit: { key: (payload) => payload, concurrency: 1 },
    });
    await stage.engine.queues.configure("default", { concurrency: 2 });
    const seen = new Set<string>();
    stage.work([
      processor(keyed, async ({ payload }) => {
        if (seen.has(payload)) throw new Error(`${payload} runs already`);
        seen.add(payload);
        counts.running += 1;
        counts.most = Math.max(counts.most, counts.running);
        await stage.sleep(100);
        counts.running -= 1;
        seen.delete(payload);
      }),
    ]);
    await stage.engine.enqueueMany(keyed, [..."aaabbbcccddd"]);
    await stage.advance("10s");
    expect(counts).toEqual({ running: 0, most: 2 });
    expect((await stage.engine.queues.depth("default")).completed).toBe(12);
  });

  it("is removed by a reset, and holds for remote workers too", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { concurrency: 1 });
    await stage.engine.enqueueMany(job, [..."abc"]);
    const fetch = () => fetchFrom(stage, 5);
    expect(await fetch()).toHaveLength(1);
    expect(await fetch()).toHaveLength(0);
    await stage.engine.queues.reset("default");
    expect(await fetch()).toHaveLength(2);
  });
});

describe("bounded queues", () => {
  it("refuse a job beyond the bound, with an error that says what to do", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 2 } });
    await stage.engine.enqueue(job, "a");
    await stage.engine.enqueue(job, "b");
    const error = (await errorOf(stage.engine.enqueue(job, "c"))) as unknown as QueueFullError;
    expect(error).toBeInstanceOf(QueueFullError);
    expect(error).toMatchObject({
      code: "queue_full",
      field: "queue",
      queue: "default",
      most: 2,
      retryAfter: 1_000,
    });
    expect(error.message).toMatch(
      /queue: "default" is full.*: 2; enqueue again in 1000 ms, or raise depth\.most/,
    );
    expect((await stage.engine.queues.depth("default")).available).toBe(2);
    expect(stage.told("queue.full")).toMatchObject({ queue: "default", most: 2 });
    await stage.engine.enqueue(job, "elsewhere", { queue: "other" });
  });

  it("count jobs at their limits and delayed ones, and no running ones", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 3 } });
    await stage.engine.enqueue(job, "later", { delay: "1h" });
    const limit = { key: "k", concurrency: 1 };
    await stage.engine.enqueue(job, "a", { limit });
    await stage.engine.enqueue(job, "b", { limit });
    await errorOf(stage.engine.enqueue(job, "c"));
    const rows = await fetchFrom(stage, 5);
    expect(rows).toHaveLength(1);
    await stage.engine.enqueue(job, "d");
  });

  it("refuse delayed jobs too, and accept jobs that come back for a retry", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 2 } });
    const fails = jobWith(() => Promise.reject(new Error("no")), { retry: { attempts: 2 } });
    stage.work(fails.processors);
    const first = await stage.engine.enqueue(fails.definition);
    await stage.settle();
    await stage.advance("100ms");
    expect((await stage.load(first)).state).toBe("retryable");
    await stage.engine.enqueue(job, "a", { delay: "1h" });
    for (const options of [{}, { delay: "1h" }] as const)
      expect(await errorOf(stage.engine.enqueue(job, "b", options))).toMatchObject({ code: "queue_full" });
    await stage.advance("2m");
    expect((await stage.load(first)).state).toBe("discarded");
    await stage.engine.enqueue(job, "b", { delay: "1h" });
  });

  it("drop-oldest discards the first delayed jobs if the queue is full of them", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 2, onFull: "drop-oldest" } });
    const jobs = [];
    for (const name of [..."abc"]) jobs.push(await stage.engine.enqueue(job, name, { delay: "1h" }));
    jobs.push(await stage.engine.enqueue(job, "d"));
    expect(await statesOf(stage, jobs)).toEqual(["discarded", "discarded", "scheduled", "available"]);
  });

  it("a known id is found even if the queue is full", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 1 } });
    const one = await stage.engine.enqueue(job, "a");
    const again = await stage.engine.enqueue(job, "a", { id: one.id });
    expect(again).toMatchObject({ id: one.id, duplicate: true });
  });

  it("enqueueMany on a bounded queue stores the jobs that fit, and names the others", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 3 } });
    const error = (await errorOf(stage.engine.enqueueMany(job, [..."abcde"]))) as unknown as QueueFullError;
    expect(error.ids).toHaveLength(2);
    for (const id of error.ids) expect(await rowOf(stage.engine.store, id)).toBeNull();
    expect((await stage.engine.queues.depth("default")).available).toBe(3);
  });

  it("drop-oldest discards the oldest jobs to make room, and never exceeds the bound", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 3, onFull: "drop-oldest" } });
    const jobs = [];
    for (const name of [..."abcde"]) {
      jobs.push(await stage.engine.enqueue(job, name));
      expect((await stage.engine.queues.depth("default")).available).toBeLessThanOrEqual(3);
    }
    expect(await statesOf(stage, jobs)).toEqual([
      "discarded",
      "discarded",
      "available",
      "available",
      "available",
    ]);
    const dropped = await stage.load(jobs[0] as never);
    expect(dropped.errors).toMatchObject([{ code: "queue_full" }]);
    expect(dropped.errors?.[0]?.message).toMatch(/^Dropped: queue "default" was full/);
  });

  it("announce pressure once at the threshold, and relief once below it", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", { depth: { most: 10, warnAt: 3 } });
    for (const name of [..."abcd"]) await stage.engine.enqueue(job, name);
    expect(stage.events.filter(({ name }) => name === "queue.pressure")).toMatchObject([
      { queue: "default", waiting: 3, most: 10 },
    ]);
    await stage.engine.queues.purge("default");
    await stage.engine.enqueue(job, "e");
    await stage.settle();
    expect(stage.told("queue.relieved")).toMatchObject({ waiting: 1 });
  });

  it("bound producers in several processes together", async () => {
    const system = createSimSystem({ seed: 1, startAt: START });
    const store = storeOn(system);
    const stages = await Promise.all([1, 2].map((seed) => openStage({ store: shared(store), seed })));
    await stages[0]?.engine.queues.configure("default", { depth: { most: 25 } });
    await Promise.all(stages.map((stage) => stage.advance("6s")));
    const tried = stages.flatMap((stage) => Array.from({ length: 30 }, () => stage.engine.enqueue(job, "x")));
    const results = await Promise.allSettled(tried);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(25);
    expect((await depthOf(store, "default")).available).toBe(25);
  });
});

describe("operators", () => {
  it("list and describe queues that have jobs, settings or a pause", async () => {
    const stage = await openStage();
    await stage.engine.enqueue(job, "a", { queue: "busy" });
    await stage.engine.queues.configure("set", { concurrency: 3, timeouts: { attempt: "1m" } });
    await stage.engine.queues.pause("halted");
    const list = await stage.engine.queues.list();
    expect(list.map(({ name }) => name)).toEqual(["busy", "halted", "set"]);
    expect(list[0]).toMatchObject({ pausedAt: null, settings: {}, depth: { available: 1, active: 0 } });
    expect(list[1]).toMatchObject({ pausedAt: START, depth: { available: 0 } });
    expect(list[2]).toMatchObject({ settings: { concurrency: 3, timeouts: { attempt: 60_000 } } });
    expect(await stage.engine.queues.describe("set")).toEqual(list[2]);
    expect((await stage.engine.queues.describe("unknown")).depth.available).toBe(0);
  });

  it("purge waiting jobs in bounded batches, and no running ones", async () => {
    const stage = await openStage();
    await stage.engine.enqueueMany(job, new Array(450).fill("x"));
    await stage.engine.enqueueMany(job, new Array(5).fill("later"), { delay: "1h" });
    const kept = await fetchFrom(stage, 3);
    const told: number[] = [];
    const removed = await stage.engine.queues.purge("default", { onProgress: (count) => told.push(count) });
    expect(removed).toBe(452);
    expect(told).toEqual([200, 400, 447, 452]);
    expect((await stage.engine.queues.list())[0]?.depth).toMatchObject({
      active: kept.length,
      available: 0,
      cancelled: 0,
    });
  });

  it("purge frees slots, and can be stopped or limited to some states", async () => {
    const stage = await openStage();
    const limit = { key: "k", concurrency: 1 };
    await stage.engine.enqueue(job, "a", { limit, queue: "one" });
    const other = await stage.engine.enqueue(job, "b", { limit, queue: "two" });
    expect((await stage.load(other)).state).toBe("pending");
    expect(await stage.engine.queues.purge("one", { states: ["scheduled"] })).toBe(0);
    expect(await stage.engine.queues.purge("one", { signal: AbortSignal.abort() })).toBe(0);
    expect(await stage.engine.queues.purge("one")).toBe(1);
    expect((await stage.load(other)).state).toBe("available");
  });

  it.each([
    ["configure", ["BAD", {}], /queue: "BAD"/],
    ["configure", ["q", { concurrency: 0 }], /queue\.concurrency: 0/],
    ["configure", ["q", { depth: { most: 0 } }], /queue\.depth\.most: 0/],
    ["configure", ["q", { depth: { most: 5, warnAt: 6 } }], /queue\.depth\.warnAt: 6 .* from 1 to 5/],
    ["configure", ["q", { depth: { most: 5, onFull: "block" } }], /queue\.depth\.onFull: "block"/],
    ["configure", ["q", { dept: 1 }], /queue\.dept/],
    ["pause", ["A B"], /queue: "A B"/],
    ["purge", ["q", { states: ["active"] }], /purge\.states: "active"/],
    ["purge", ["q", { all: true }], /purge\.all/],
  ] as const)("%s refuses %j", async (method, args, words) => {
    const stage = await openStage();
    const call = stage.engine.queues[method] as (...values: readonly unknown[]) => Promise<unknown>;
    const error = await errorOf(call.apply(stage.engine.queues, [...args]));
    expect(error.message).toMatch(words);
  });
});
