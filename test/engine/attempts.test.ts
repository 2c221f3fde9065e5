import { describe, expect, it } from "vitest";
import type { Schema } from "../../src/core/schema.ts";
import { defineJob, type PolicyOptions, processor, type StopError, TimeoutError } from "../../src/index.ts";
import { createLatch } from "../../src/testing/index.ts";
import {
  deaf,
  jobOf,
  jobWith,
  obedient,
  openPair,
  openStage,
  openUnsure,
  openWithJob,
  START,
  sleepOn,
} from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };

describe("3.1 never entered past a deadline", () => {
  it.each([
    ["wait", { wait: "10s" }, "enqueue_ttl_expired"],
    ["total", { total: "10s" }, "total_timeout"],
    ["total before wait", { total: "10s", wait: "10s" }, "total_timeout"],
  ] as const)("%s", async (_name, timeouts, type) => {
    const stage = await openStage();
    let entered = 0;
    const { definition, processors } = jobWith(() => void entered++, { timeouts });
    await stage.engine.queues.pause("default");
    const job = await stage.engine.enqueue(definition);
    stage.work(processors);
    // The machine stands still over the deadline, so that the claim comes before any sweep.
    stage.system.pause(10_000);
    await stage.engine.queues.resume("default");
    await stage.advance("1s");
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["discarded", type]);
    expect(entered).toBe(0);
  });

  it("a cancelled job is never entered", async () => {
    const stage = await openStage();
    let entered = 0;
    const { definition, processors } = jobWith(() => void entered++);
    const job = await stage.engine.enqueue(definition);
    await stage.engine.cancel(job.id);
    stage.work(processors);
    await stage.advance("1m");
    expect(entered).toBe(0);
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.cancelled"]);
  });

  it("an engine with a slow store clock enters a job only if its deadline has certainly not passed", async () => {
    const { engine, system } = await openUnsure(300);
    const entries: { at: number; totalAt: number }[] = [];
    const { definition, processors } = jobWith(({ payload }) => {
      entries.push({ at: START + system.monotonic(), totalAt: payload as number });
    });
    engine.work({ processors });
    for (let room = 0; room <= 600; room += 20) {
      await engine.queues.pause("default");
      const totalAt = engine.now() + room + 50;
      await engine.enqueue(definition, totalAt, { timeouts: { total: `${room + 50}ms` } });
      await system.advance(50);
      await engine.queues.resume("default");
      await system.advance(1_000);
    }
    expect(entries.length).toBeGreaterThan(5);
    expect(entries.length).toBeLessThan(31);
    for (const { at, totalAt } of entries) expect(at).toBeLessThan(totalAt);
  });

  it("a schema that takes too long spends the attempt, and its handler is not entered", async () => {
    const stage = await openStage();
    let entered = 0;
    let validated = 0;
    const slow: Schema<unknown, unknown> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value) => {
          // The first validation is the one at enqueue.
          if (validated++ > 0) await stage.sleep(30_000);
          return { value };
        },
      },
    };
    const definition = defineJob({ type: "a", payload: slow, ...once, timeouts: { attempt: "10s" } });
    stage.work([processor(definition, () => void entered++)]);
    const job = await stage.engine.enqueue(definition, null);
    await stage.advance("31s");
    const row = await stage.load(job);
    expect([entered, row.state, row.errors?.[0]?.type]).toEqual([0, "discarded", "timeout"]);
  });

  it("a handler that throws at once after an asynchronous schema is a failed attempt", async () => {
    const stage = await openStage();
    const schema: Schema<unknown, unknown> = {
      "~standard": { version: 1, vendor: "test", validate: async (value) => ({ value }) },
    };
    const definition = defineJob({ type: "a", payload: schema, ...once });
    stage.work([
      processor(definition, () => {
        throw new RangeError("at once");
      }),
    ]);
    const job = await stage.engine.enqueue(definition, null);
    await stage.settle();
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "RangeError" });
  });
});

describe("3.1 a claim is a short lease, not a start", () => {
  /** Handlers of 50 ms, so that a worker with one slot holds others ahead. */
  async function prefetching() {
    const stage = await openStage();
    const latch = createLatch();
    let blocks = false;
    const { definition, processors } = jobWith(() => (blocks ? latch.pass() : stage.sleep(50)), {
      timeouts: { heartbeat: "5s", attempt: "10s" },
    });
    const worker = stage.work(processors, { queues: { default: { concurrency: 1 } } });
    await stage.engine.enqueueMany(definition, [1, 2, 3]);
    await stage.advance("1s");
    blocks = true;
    const jobs = await stage.engine.enqueueMany(definition, [4, 5, 6]);
    await stage.settle();
    return { stage, worker, latch, jobs };
  }

  it("prefetched jobs run no attempt or heartbeat clock", async () => {
    const { stage, worker, jobs } = await prefetching();
    expect(worker.status()).toMatchObject({ running: 1 });
    expect(worker.status().held).toBeGreaterThan(0);
    const held = await stage.load(jobs[1] as { id: string });
    expect(held).toMatchObject({ state: "active", attempt: 0, startedAt: null, softAt: null });
  });

  it("a job that waits too long for a slot is released unspent, and another worker runs it", async () => {
    const { stage, worker, jobs } = await prefetching();
    await stage.advance("1200ms");
    expect(worker.status().held).toBe(0);
    const row = await stage.load(jobs[1] as { id: string });
    expect(row).toMatchObject({ state: "available", attempt: 0, expiredClaims: 0, returns: 0 });
    expect(stage.names(row.id)).toContain("job.released");
  });

  it("a job that was cancelled before its claim was last confirmed is never entered", async () => {
    const { stage, latch, jobs } = await prefetching();
    const second = jobs[1] as { id: string };
    await stage.engine.cancel(second.id);
    await stage.advance("500ms");
    latch.open();
    await stage.advance("2s");
    expect(await stage.load(second)).toMatchObject({ state: "cancelled", attempt: 0 });
    expect(stage.names(second.id)).not.toContain("job.started");
  });

  it("after the event loop was blocked, no job is entered before a beat confirmed its claim", async () => {
    const pair = await openPair();
    const entered: string[] = [];
    const { definition, processors } = jobWith(async ({ payload }) => {
      entered.push(`second ${payload}`);
      await sleepOn(pair.second.system, 50);
    });
    const others = jobWith(async ({ payload }) => void entered.push(`first ${payload}`));
    pair.second.work(processors, { queues: { default: { concurrency: 1 } } });
    await pair.second.engine.enqueueMany(definition, [1, 2, 3]);
    await pair.advance(1_000);
    entered.length = 0;
    const jobs = await pair.second.engine.enqueueMany(definition, [4, 5, 6]);
    await pair.second.settle();
    pair.first.work(others.processors);
    // The second machine stands still for longer than the lease of what it holds.
    await pair.pauseSecond(90_000);
    await pair.advance(5_000);
    expect([...entered].sort()).toEqual(["first 4", "first 5", "first 6", "second 4"]);
    for (const job of jobs)
      expect(await pair.first.load(job)).toMatchObject({ state: "completed", attempt: 1 });
    // The verdict on 4, and what it wanted to give back of 5 and 6.
    expect(pair.second.counters()).toMatchObject({ lost: 3, completed: 3 });
  });
});

describe("3.2 the signal", () => {
  it("the reason of the signal has the kind of limit, its length and the hard deadline", async () => {
    const stage = await openStage();
    const reasons: unknown[] = [];
    const listening = (settings: PolicyOptions, type: string) =>
      jobWith(
        ({ signal }) => {
          signal.addEventListener("abort", () => reasons.push(signal.reason));
          return deaf();
        },
        settings,
        type,
      );
    const execution = listening({ timeouts: { attempt: "10s", grace: "5s" } }, "a.execution");
    const total = listening({ timeouts: { total: "20s", grace: "unbounded" } }, "b.total");
    stage.work([...execution.processors, ...total.processors]);
    await stage.engine.enqueue(execution.definition);
    await stage.engine.enqueue(total.definition);
    await stage.advance("20s");
    expect(reasons).toEqual([expect.any(TimeoutError), expect.any(TimeoutError)]);
    expect(reasons[0]).toMatchObject({
      kind: "execution",
      limit: 10_000,
      elapsed: 10_000,
      deadline: START + 15_000,
    });
    expect(reasons[1]).toMatchObject({ kind: "total", limit: 20_000, elapsed: 20_000, deadline: null });
  });

  it("deadline and remaining() show the earlier of the attempt's end and totalAt", async () => {
    const stage = await openStage();
    const seen: unknown[] = [];
    const { definition, processors } = jobWith(
      async ({ deadline, remaining }) => {
        seen.push(deadline, remaining());
        await stage.sleep(4_000);
        seen.push(remaining());
      },
      { timeouts: { attempt: "10s", total: "16s" }, retry: { attempts: 1 } },
    );
    const job = await stage.engine.enqueue(definition);
    await stage.advance("8s");
    stage.work(processors);
    await stage.advance("5s");
    expect(seen).toEqual([START + 16_000, expect.any(Number), expect.any(Number)]);
    expect(seen[1]).toBeGreaterThan(7_990);
    expect(seen[2]).toBeLessThanOrEqual(4_000);
    expect((await stage.load(job)).state).toBe("completed");
  });

  it("a signal first read after the abort is aborted already", async () => {
    const stage = await openStage();
    const states: unknown[] = [];
    const { definition, processors } = jobWith(
      async (context) => {
        await stage.sleep(6_000);
        states.push(context.signal.aborted, (context.signal.reason as TimeoutError).kind);
      },
      { timeouts: { attempt: "5s" } },
    );
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("6s");
    expect(states).toEqual([true, "execution"]);
  });
});

describe("3.2 cleanup hooks", () => {
  it.each([
    ["the soft signal", async () => {}, "execution"],
    ["a cancel", async (stage, id) => void (await stage.engine.cancel(id)), "cancelled"],
    ["shutdown", async (stage) => void stage.engine.close({ drain: "0s" }), "shutdown"],
  ] as [string, (stage: Awaited<ReturnType<typeof openStage>>, id: string) => Promise<void>, string][])(
    "run once at %s, beside the handler, and their end does not end it",
    async (_name, act, kind) => {
      const stage = await openStage();
      const runs: unknown[] = [];
      const { definition, processors } = jobWith(
        async (context) => {
          const { onCleanup } = context;
          onCleanup(() => void runs.push((context.signal.reason as StopError).kind));
          onCleanup(async () => void runs.push(context.attempt));
          await stage.sleep(9_000);
          runs.push("handler ended");
        },
        { timeouts: { attempt: "5s" } },
      );
      stage.work(processors);
      const job = await stage.engine.enqueue(definition);
      await stage.advance("4s");
      expect(runs).toEqual([]);
      await act(stage, job.id);
      await stage.advance("3s");
      expect(runs).toEqual([kind, 1]);
      await stage.advance("10s");
      expect(runs).toEqual([kind, 1, "handler ended"]);
    },
  );

  it("hooks do not run if the handler ends in time, and run at once if added after the signal", async () => {
    const stage = await openStage();
    const runs: string[] = [];
    const { definition, processors } = jobWith(
      async ({ onCleanup, payload }) => {
        if (payload === "early") onCleanup(() => void runs.push("early"));
        await stage.sleep(payload === "early" ? 1_000 : 6_000);
        if (payload === "late") onCleanup(() => void runs.push("late"));
      },
      { timeouts: { attempt: "5s" } },
    );
    stage.work(processors);
    await stage.engine.enqueue(definition, "early");
    await stage.engine.enqueue(definition, "late");
    await stage.advance("10s");
    expect(runs).toEqual(["late"]);
  });

  it("an error of a hook is only logged and announced", async () => {
    const warnings: object[] = [];
    const logger = {
      debug() {},
      info() {},
      error() {},
      warn: (fields: object) => void warnings.push(fields),
    };
    const stage = await openStage({ logger });
    const { definition, processors } = jobWith(
      async ({ onCleanup }) => {
        onCleanup(() => {
          throw new RangeError("at once");
        });
        onCleanup(() => Promise.reject(new TypeError("later")));
        await stage.sleep(6_000);
        return "done";
      },
      { timeouts: { attempt: "5s" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("6s");
    expect((await stage.load(job)).state).toBe("completed");
    const told = stage.events.filter(({ name }) => name === "job.cleanup_failed");
    expect(told.map((event) => "error" in event && (event.error as Error & { type: string }).type)).toEqual([
      "RangeError",
      "TypeError",
    ]);
    // The third says that the memory store is not durable.
    expect(warnings).toHaveLength(3);
  });
});

describe("3.3 one verdict", () => {
  it.each([
    ["a handler that settles first", 4_000, "completed"],
    ["the hard deadline", 60_000, "discarded"],
  ])("%s", async (_name, delay, state) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(delay as number), {
      ...once,
      timeouts: { attempt: "5s", grace: "5s" },
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("2m");
    expect((await stage.load(job)).state).toBe(state);
    const ends = ["job.completed", "job.discarded", "job.cancelled"];
    expect(stage.names(job.id).filter((name) => ends.includes(name))).toHaveLength(1);
  });

  it.each([
    ["total before stalled", { total: "10s", heartbeat: "10s", grace: "0s" }, "total_timeout"],
    ["total before execution", { total: "10s", attempt: "10s", grace: "0s" }, "total_timeout"],
    ["stalled before execution", { attempt: "10s", heartbeat: "10s", grace: "0s" }, "stalled"],
  ] as const)("of two causes at one instant, this one wins: %s", async (_name, timeouts, type) => {
    const { stage, job } = await openWithJob(deaf, { ...once, timeouts });
    await stage.advance("11s");
    const row = await stage.load(job);
    expect(row.errors?.map((error) => error.type)).toEqual([type]);
  });

  it.each([
    ["execution", { attempt: "10s", grace: "1s" }],
    ["execution without grace", { attempt: "10s", grace: "0s" }],
    ["stalled", { heartbeat: "10s", grace: "1s" }],
  ] as const)("of two causes at one instant, shutdown wins over %s", async (_name, timeouts) => {
    const { stage, job } = await openWithJob(deaf, { retry: { attempts: 3 }, timeouts });
    await stage.settle();
    const closing = stage.engine.close({ drain: "10s" });
    const told: unknown[] = [];
    stage.engine.on("job.released", ({ error }) => void told.push(error?.type));
    await stage.advance("20s");
    await closing;
    expect([told, stage.names(job.id).filter((name) => /timeout|stalled/.test(name))]).toEqual([
      ["shutdown"],
      [],
    ]);
  });

  it("a shutdown at the instant of `total` releases the job, which then ends by its total while it waits", async () => {
    const { stage, job } = await openWithJob(deaf, { timeouts: { total: "10s", grace: "1s" } });
    await stage.settle();
    const closing = stage.engine.close({ drain: "10s" });
    await stage.advance("20s");
    await closing;
    const ends = ["job.released", "job.total_timeout", "job.discarded"];
    expect(stage.names(job.id).filter((name) => ends.includes(name))).toEqual(ends);
  });

  it.each([
    ["attempt", { attempt: "10s", grace: "0s" }, deaf, ["Timed out after 10s"]],
    ["total", { total: "10s", grace: "0s" }, deaf, ["Timed out (deadline exceeded, 10s total budget)"]],
    ["heartbeat", { heartbeat: "10s" }, deaf, ["Stalled: no beat for 10s"]],
    ["wait", { wait: "10s" }, null, ["Expired: not started within 10s"]],
  ] as const)(
    "3.9 the message of an exceeded %s is in the job's log",
    async (_name, timeouts, run, messages) => {
      const stage = await openStage();
      const { definition, processors } = jobWith(run ?? deaf, { ...once, timeouts });
      if (run) stage.work(processors);
      const job = await stage.engine.enqueue(definition);
      await stage.advance("15s");
      const { lines } = await job.logs();
      expect(lines.map(({ message }) => message)).toEqual(messages);
    },
  );

  it("a result at the hard deadline itself comes too late", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(10_000), {
      ...once,
      timeouts: { attempt: "5s", grace: "5s" },
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("11s");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "timeout", forced: true });
  });

  it("the cause is fixed at the soft signal: a failure in grace is that timeout", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      async () => {
        await stage.sleep(7_000);
        throw new RangeError("my own");
      },
      { ...once, timeouts: { attempt: "5s" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("8s");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({
      type: "timeout",
      elapsed: 7_000,
      cause: { type: "RangeError", message: "my own" },
    });
  });

  it("if totalAt passes during grace, the job is not retried", async () => {
    const { stage, job } = await openWithJob(deaf, {
      timeouts: { attempt: "10s", grace: "10s", total: "15s" },
      retry: { attempts: 9 },
    });
    await stage.advance("20s");
    const row = await stage.load(job);
    expect(row.state).toBe("discarded");
    expect(row.errors?.map((error) => error.type)).toEqual(["timeout", "total_timeout"]);
    expect(row.errors?.[1]).not.toHaveProperty("predicted");
  });
});

describe("3.5 classified by the state of our signal", () => {
  it.each([
    ["AbortError", new DOMException("mine", "AbortError")],
    ["TimeoutError", new DOMException("mine", "TimeoutError")],
    ["TimeoutError", new TimeoutError("execution", 5, 5, null)],
  ])("a handler's own earlier %s is an ordinary failure", async (type, error) => {
    const { stage, job } = await openWithJob(() => Promise.reject(error), once);
    await stage.settle();
    const [record] = (await stage.load(job)).errors ?? [];
    expect(record?.type).toBe(type);
    expect(record).not.toHaveProperty("kind");
    expect(stage.names(job.id)).not.toContain("job.timeout");
    expect(stage.counters().timeouts).toEqual([]);
  });

  it("any error after our abort is a timeout, whatever its class", async () => {
    const { stage, job } = await openWithJob(
      (context) => obedient(context).catch(() => Promise.reject("just text")),
      { ...once, timeouts: { attempt: "5s" } },
    );
    await stage.advance("5s");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({
      type: "timeout",
      cause: { type: "NotAnError" },
    });
  });

  it("the reason itself, thrown back, is the timeout", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(obedient, { ...once, timeouts: { attempt: "5s" } });
    stage.work(processors);
    const job = await stage.engine.enqueue(jobOf(), null, { timeouts: { attempt: "5s" } });
    await stage.engine.enqueue(definition);
    await stage.advance("5s");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "timeout", kind: "execution" });
  });
});
