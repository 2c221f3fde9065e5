import { setTimeout as realSleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  type BatchContext,
  type BatchJob,
  batchProcessor,
  Discard,
  defineJob,
  type Middleware,
  type PolicyOptions,
  snooze,
  unchecked,
} from "../../src/index.ts";
import { createLatch } from "../../src/testing/index.ts";
import { openPair, openStage, START } from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };
const nth = (settings: PolicyOptions = once) =>
  defineJob({ type: "row.add", payload: unchecked<number>(), ...settings });
const payloads = (jobs: readonly Pick<BatchJob, "payload">[]) => jobs.map(({ payload }) => payload);

async function openBatch(
  handler: (batch: BatchContext<number, never>) => unknown,
  settings: PolicyOptions = once,
  options: { readonly size?: number; readonly middleware?: readonly Middleware[]; slots?: number } = {},
) {
  const stage = await openStage();
  const definition = nth(settings);
  const { size = 3, middleware, slots = 20 } = options;
  const worker = stage.work([batchProcessor(definition, { size, within: "50ms" }, handler as never)], {
    queues: { default: { concurrency: slots } },
    ...(middleware && { middleware }),
  });
  const add = (count: number, from = 0) =>
    stage.engine.enqueueMany(
      definition,
      Array.from({ length: count }, (_, index) => from + index),
    );
  return { stage, definition, worker, add };
}

describe("3.13 gathering", () => {
  it("calls the handler at the size, and for the rest exactly `within` after the first joined", async () => {
    const calls: [number, unknown[]][] = [];
    const { stage, add } = await openBatch(
      ({ jobs }) => void calls.push([stage.now() - START, payloads(jobs)]),
    );
    await add(7);
    await stage.advance("49ms");
    expect(calls).toEqual([
      [0, [0, 1, 2]],
      [0, [3, 4, 5]],
    ]);
    await stage.advance("1ms");
    expect(calls[2]).toEqual([50, [6]]);
    await stage.advance("20ms");
    await add(1, 7);
    await stage.advance("30ms");
    await add(1, 8);
    await stage.advance("19ms");
    expect(calls).toHaveLength(3);
    await stage.advance("1ms");
    expect(calls[3]).toEqual([120, [7, 8]]);
    expect(stage.names().filter((name) => name === "job.completed")).toHaveLength(9);
  });

  it("does not wait for more jobs than the worker has slots", async () => {
    const calls: number[] = [];
    const { stage, add } = await openBatch(({ jobs }) => void calls.push(jobs.length), once, {
      size: 100,
      slots: 4,
    });
    await add(8);
    await stage.settle();
    expect([calls, stage.now()]).toEqual([[4, 4], START]);
  });

  it("gives two batches their room if no queue is named", async () => {
    const stage = await openStage();
    const sizes: number[] = [];
    const processors = [
      batchProcessor(nth(), { size: 40, within: "1s" }, ({ jobs }) => void sizes.push(jobs.length)),
    ];
    stage.work(processors);
    for (let index = 0; index < 80; index++) await stage.engine.enqueue(nth(), index);
    await stage.advance("10ms");
    expect(sizes).toEqual([40, 40]);
  });

  it("a cancelled job and one whose time is over never enter, and the others stay", async () => {
    const seen: unknown[] = [];
    const { stage, definition, add } = await openBatch(({ jobs }) => void seen.push(payloads(jobs)));
    const [first] = await add(1);
    const short = await stage.engine.enqueue(definition, 1, { timeouts: { attempt: "20ms" } });
    await stage.advance("10ms");
    await stage.engine.cancel(first?.id as string);
    await stage.advance("10ms");
    const row = await stage.load(short);
    expect([row.state, row.errors?.[0]?.type, row.errors?.[0]?.at]).toEqual([
      "discarded",
      "timeout",
      START + 20,
    ]);
    // Both left, so the next one begins a new batch.
    await add(1, 2);
    await stage.advance("49ms");
    expect(seen).toEqual([]);
    await stage.advance("1ms");
    expect(seen).toEqual([[2]]);
    expect(stage.counters().stuck).toBe(0);
  });

  it("close() calls the handler at once for what has joined", async () => {
    const seen: unknown[] = [];
    const { stage, worker, add } = await openBatch(({ jobs }) => void seen.push(payloads(jobs)));
    const jobs = await add(2);
    await stage.settle();
    const closing = worker.close();
    await stage.settle();
    await closing;
    expect([seen, stage.now()]).toEqual([[[0, 1]], START]);
    for (const job of jobs) expect((await stage.load(job)).state).toBe("completed");
  });

  it("refuses sizes and times that cannot be kept", () => {
    const handler = () => {};
    for (const size of [0, 1.5, 1_001, Number.NaN])
      expect(() => batchProcessor(nth(), { size, within: "1s" }, handler)).toThrow("batch.size");
    for (const within of ["0s", "11s", "x"] as never[])
      expect(() => batchProcessor(nth(), { size: 2, within }, handler)).toThrow("batch.within");
    const short = nth({ timeouts: { attempt: "1s" } });
    expect(() => batchProcessor(short, { size: 2, within: "1s" }, handler)).toThrow("timeouts.attempt");
    expect(() => batchProcessor(nth(), { size: 2, within: "1s" }, 5 as never)).toThrow("handler");
    expect(() => batchProcessor(nth(), { size: 2, within: "1s", most: 1 } as never, handler)).toThrow("most");
  });
});

describe("3.13 verdicts", () => {
  const states = async (
    handler: (batch: BatchContext<number, never>) => unknown,
    settings: PolicyOptions = once,
    size = 4,
  ) => {
    const { stage, add } = await openBatch(handler, settings, { size });
    const jobs = await add(4);
    await stage.advance("60ms");
    const rows = await Promise.all(jobs.map((job) => stage.load(job)));
    return rows.map(({ state, result, errors }) => [state, result ?? errors?.[0]?.message]);
  };

  it("takes one element per job: a result, a snooze, an error, a Discard", async () => {
    const handler = () => [{ ok: 1 }, snooze({ after: "1h" }), new Error("one failed"), new Discard("never")];
    expect(await states(handler, { retry: { attempts: 5 } })).toEqual([
      ["completed", '{"ok":1}'],
      ["scheduled", undefined],
      ["retryable", "one failed"],
      ["discarded", "never"],
    ]);
  });

  it("a throw fails, and nothing completes, those without a verdict", async () => {
    const early = async ({ jobs }: BatchContext<number, never>) => {
      jobs[0]?.settle("early" as never);
      jobs[1]?.settle(new Error("its own"));
      jobs[1]?.settle("again" as never);
      throw new Error("all");
    };
    expect(await states(early)).toEqual([
      ["completed", '"early"'],
      ["discarded", "its own"],
      ["discarded", "all"],
      ["discarded", "all"],
    ]);
    const quiet = ({ jobs }: BatchContext<number, never>) => jobs[2]?.settle(snooze({ after: "1h" }));
    expect((await states(quiet)).map(([state]) => state)).toEqual([
      "completed",
      "completed",
      "scheduled",
      "completed",
    ]);
    const all = () => snooze({ after: "1h" });
    expect((await states(all)).map(([state]) => state)).toEqual(Array(4).fill("scheduled"));
  });

  it("refuses an array of another length and one that cannot be read", async () => {
    for (const value of [[1, 2, 3], "text", { length: 4 }])
      expect((await states(() => value))[0]?.[1]).toMatch(/return one element per job .*\(4\)/);
    const { proxy, revoke } = Proxy.revocable([], {});
    revoke();
    expect((await states(() => Promise.resolve().then(() => proxy)))[3]?.[0]).toBe("discarded");
    const hostile = Object.defineProperty([1, 2, 3, 4], 2, {
      get: () => {
        throw new Error("a getter");
      },
    });
    expect(await states(() => hostile)).toEqual([
      ["completed", "1"],
      ["completed", "2"],
      ["discarded", "a getter"],
      ["discarded", "a getter"],
    ]);
  });

  it("a job that its schema refuses fails alone", async () => {
    const stage = await openStage();
    const even = defineJob({
      type: "even",
      payload: {
        "~standard": {
          version: 1 as const,
          vendor: "test",
          validate: (value: unknown) =>
            stage.now() > START && value === 1
              ? { issues: [{ message: "odd" }] }
              : { value: value as number },
        },
      },
      retry: { attempts: 1 },
    });
    const jobs = [];
    for (let index = 0; index < 3; index++)
      jobs.push(await stage.engine.enqueue(even, index, { delay: "1s" }));
    const seen: unknown[] = [];
    stage.work([
      batchProcessor(even, { size: 5, within: "50ms" }, (batch) => void seen.push(payloads(batch.jobs))),
    ]);
    await stage.advance("2s");
    expect(seen).toEqual([[0, 2]]);
    expect((await stage.load(jobs[1] as never)).state).toBe("discarded");
  });
});

describe("3.13 deadlines of each job", () => {
  it("signals each job at its own deadline, the batch after the last, and forces each at its own", async () => {
    const told: [string, number][] = [];
    const { stage, definition } = await openBatch(({ jobs, signal }) => {
      for (const job of jobs)
        job.signal.addEventListener("abort", () => told.push([`job ${job.payload}`, stage.now() - START]));
      signal.addEventListener("abort", () => told.push([`batch ${signal.reason.kind}`, stage.now() - START]));
      return new Promise(() => {});
    });
    const jobs = [];
    for (const [index, attempt] of (["1s", "3s", "2s"] as const).entries())
      jobs.push(await stage.engine.enqueue(definition, index, { timeouts: { attempt, grace: "500ms" } }));
    await stage.advance("1s");
    expect(told).toEqual([["job 0", 1_000]]);
    await stage.advance("9s");
    expect(told.slice(1)).toEqual([
      ["job 2", 2_000],
      ["job 1", 3_000],
      ["batch execution", 3_000],
    ]);
    const ends = await Promise.all(jobs.map(async (job) => (await stage.load(job)).errors?.[0]?.at));
    expect(ends).toEqual([1_500, 3_500, 2_500].map((at) => START + at));
    expect(stage.counters().stuck).toBe(3);
  });

  it("a batch that ends in the grace of one job completes that one late", async () => {
    const { stage, definition } = await openBatch(() => stage.sleep(1_200));
    const late = await stage.engine.enqueue(definition, 0, { timeouts: { attempt: "1s", grace: "500ms" } });
    const inTime = await stage.engine.enqueue(definition, 1);
    await stage.advance("2s");
    const done = stage.events.filter(({ name }) => name === "job.completed");
    expect(done.map((event) => "id" in event && [event.id, "late" in event && event.late])).toEqual([
      [late.id, true],
      [inTime.id, false],
    ]);
  });

  it("a stalled job is ended alone, and one that makes progress goes on", async () => {
    const { stage, add } = await openBatch(
      async ({ jobs }) => {
        for (let round = 0; round < 8; round++) {
          await stage.sleep(500);
          jobs[0]?.progress(round / 8);
        }
      },
      { ...once, timeouts: { heartbeat: "1s" } },
      { size: 2 },
    );
    const [first, second] = await add(2);
    await stage.advance("10s");
    expect((await stage.load(first as never)).state).toBe("completed");
    const row = await stage.load(second as never);
    expect([row.errors?.[0]?.type, row.errors?.[0]?.at]).toEqual(["stalled", START + 1_000]);
  });

  it("cancelling one job of a running batch leaves the others, and its result is fenced off", async () => {
    let aborted = false;
    const { stage, add } = await openBatch(async ({ jobs, signal }) => {
      await stage.sleep(1_000);
      aborted = signal.aborted;
      return jobs.map(({ payload }) => payload);
    });
    const [first, second, third] = await add(3);
    await stage.settle();
    await stage.engine.cancel(second?.id as string);
    await stage.advance("2s");
    const rows = await Promise.all([first, second, third].map((job) => stage.load(job as never)));
    expect(rows.map(({ state }) => state)).toEqual(["completed", "cancelled", "completed"]);
    expect(aborted).toBe(false);
  });

  it("a shutdown releases each job unspent, and another process runs them", async () => {
    const pair = await openPair();
    const definition = nth();
    const { first, second } = pair;
    const reasons: string[] = [];
    const waiting = batchProcessor(definition, { size: 3, within: "50ms" }, ({ signal }) => {
      return new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason.kind);
          reject(signal.reason);
        }),
      );
    });
    const worker = first.work([waiting]);
    const jobs = await first.engine.enqueueMany(definition, [0, 1, 2]);
    await pair.advance(100);
    const closing = worker.close({ drain: "0s" });
    await pair.advance(1_000);
    await closing;
    expect(reasons).toEqual(["shutdown"]);
    const done: unknown[] = [];
    second.work([
      batchProcessor(
        definition,
        { size: 3, within: "50ms" },
        (batch) => void done.push(payloads(batch.jobs)),
      ),
    ]);
    await pair.advance(3_000);
    expect(done).toEqual([[0, 1, 2]]);
    for (const job of jobs) expect((await first.load(job)).attempt).toBe(1);
  });

  it("a crash in the middle of a batch spends each attempt once, and every job runs again", async () => {
    const pair = await openPair();
    const definition = nth({ retry: { attempts: 3 } });
    pair.second.work([batchProcessor(definition, { size: 3, within: "50ms" }, () => new Promise(() => {}))]);
    const jobs = await pair.second.engine.enqueueMany(definition, [0, 1, 2]);
    await pair.advance(1_000);
    pair.crashSecond();
    const done: unknown[] = [];
    pair.first.work([
      batchProcessor(definition, { size: 3, within: "50ms" }, ({ jobs: all }) => {
        done.push(...all.map(({ payload, attempt }) => [payload, attempt]));
      }),
    ]);
    await pair.advance(90_000, 500);
    expect(done.toSorted()).toEqual([
      [0, 2],
      [1, 2],
      [2, 2],
    ]);
    for (const job of jobs) expect((await pair.first.load(job)).state).toBe("completed");
  });
});

describe("3.13 around the handler", () => {
  it("middleware wraps each job, and sees its own verdict", async () => {
    const seen: unknown[] = [];
    const watch: Middleware = async (context, next) => {
      try {
        return await next();
      } catch (error) {
        seen.push([context.payload, (error as Error).message]);
        throw error;
      } finally {
        seen.push(context.payload);
      }
    };
    const { stage, add } = await openBatch(() => [undefined, new Error("bad"), undefined], once, {
      middleware: [watch],
    });
    await add(3);
    await stage.settle();
    expect(seen.toSorted()).toEqual([0, 1, [1, "bad"], 2].toSorted());
  });

  it("what a job of a batch enqueues inherits from that job", async () => {
    const child = defineJob({ type: "child" });
    const ids: string[] = [];
    const { stage, definition } = await openBatch(async ({ jobs }) => {
      for (const job of jobs) ids.push((await job.enqueue(child, undefined, {})).id);
    });
    const parent = await stage.engine.enqueue(definition, 0, { timeouts: { total: "1m" } });
    await stage.advance("100ms");
    const row = await stage.load({ id: ids[0] as string });
    expect([row.totalAt, row.options?.inheritedFrom]).toEqual([START + 60_000, parent.id]);
  });

  it("a batch that blocks the event loop keeps no job for ever", async () => {
    const latch = createLatch();
    const { stage, add } = await openBatch(async () => latch.pass(), {
      ...once,
      timeouts: { attempt: "1s", grace: "0s" },
    });
    const jobs = await add(3);
    await stage.advance("1s");
    for (const job of jobs) expect((await stage.load(job)).state).toBe("discarded");
    expect(stage.counters().stuck).toBe(3);
    latch.open();
    await stage.settle();
    await realSleep(0);
    expect(stage.engine.counters().ignored).toBe(3);
  });
});
