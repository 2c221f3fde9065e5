import { describe, expectTypeOf, it } from "vitest";
import {
  batchProcessor,
  type CounterSnapshot,
  defineJob,
  type Engine,
  type ErrorRecord,
  type Job,
  type JobHandle,
  type Json,
  openEngine,
  processor,
  snooze,
  unchecked,
} from "../../src/index.ts";
import { charge, optional, plain } from "./jobs.ts";

declare const engine: Engine;

describe("enqueue", () => {
  it("takes what the definition takes, and gives a handle on its result", () => {
    expectTypeOf(engine.enqueue(charge, { orderId: "o", cents: "1" })).toEqualTypeOf<
      Promise<JobHandle<{ receipt: string }>>
    >();
    engine.enqueue(
      charge,
      { orderId: "o", cents: "1" },
      { timeouts: { attempt: "30s" }, delay: { minutes: 5 } },
    );
    engine.enqueue(plain);
    engine.enqueue(plain, undefined, { priority: 5 });
    engine.enqueue(plain, { any: ["json", null] });
    engine.enqueue(optional);
    engine.enqueueMany(charge, [{ orderId: "o", cents: "1" }], { queue: "money" });
  });

  it("refuses a wrong or missing payload", () => {
    // @ts-expect-error cents is text when it is enqueued
    engine.enqueue(charge, { orderId: "o", cents: 1 });
    // @ts-expect-error cents is missing
    engine.enqueue(charge, { orderId: "o" });
    // @ts-expect-error there is no such field
    engine.enqueue(charge, { orderId: "o", cents: "1", dollars: 1 });
    // @ts-expect-error a payload is needed
    engine.enqueue(charge);
    // @ts-expect-error a payload is needed
    engine.enqueue(charge, undefined, { priority: 5 });
    // @ts-expect-error a date is not JSON
    engine.enqueue(plain, new Date(0));
    // @ts-expect-error one of them does not fit
    engine.enqueueMany(charge, [{ orderId: "o", cents: "1" }, { orderId: "o" }]);
    // @ts-expect-error a definition is made by defineJob
    engine.enqueue("card.charge", {});
  });

  it("refuses options it does not know", () => {
    // @ts-expect-error the key is timeouts
    engine.enqueue(plain, null, { timeout: "30s" });
    // @ts-expect-error a space and a word
    engine.enqueue(plain, null, { timeouts: { attempt: "30 sec" } });
    // @ts-expect-error a bare number does not say its unit
    engine.enqueue(plain, null, { delay: 30 });
    // @ts-expect-error many jobs cannot share one id
    engine.enqueueMany(plain, [1], { id: "01890000-0000-7000-8000-000000000001" });
  });
});

describe("a handle", () => {
  it("gives the result as the definition declares it", async () => {
    const job = await engine.enqueue(charge, { orderId: "o", cents: "1" });
    expectTypeOf(job.result()).toEqualTypeOf<Promise<{ receipt: string }>>();
    expectTypeOf(job.duplicate).toEqualTypeOf<boolean>();
    expectTypeOf(engine.job("id", charge).result()).toEqualTypeOf<Promise<{ receipt: string }>>();
    // @ts-expect-error the result has no such field
    (await job.result()).total;
    // @ts-expect-error a bare number does not say its unit
    job.result({ within: 5_000 });
    // @ts-expect-error a space and a word
    job.result({ within: "5 min" });
    // @ts-expect-error there is no such option
    job.result({ timeout: "5m" });
  });
});

describe("a processor", () => {
  it("sees the payload as parsed, and returns the result or a snooze", () => {
    processor(charge, ({ payload, id, attempt, signal, remaining, deadline }) => {
      expectTypeOf(payload).toEqualTypeOf<{ orderId: string; cents: number }>();
      expectTypeOf(id).toEqualTypeOf<string>();
      expectTypeOf(attempt).toEqualTypeOf<number>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(remaining).returns.toEqualTypeOf<number>();
      expectTypeOf(deadline).toEqualTypeOf<number | null>();
      return { receipt: "r" };
    });
    processor(charge, async () => snooze({ after: "1m" }));
    processor(charge, async ({ attempt }) =>
      attempt > 3 ? { receipt: "r" } : snooze({ until: new Date() }),
    );
    processor(plain, () => null);
    processor(defineJob({ type: "a", payload: unchecked<1>() }), ({ payload }) => payload satisfies 1);
  });

  it("may return nothing where no result is declared", () => {
    processor(plain, () => {});
    processor(plain, async () => {});
    processor(plain, async ({ signal }) => {
      signal.throwIfAborted();
    });
    const quiet = async (): Promise<void> => {};
    processor(plain, quiet);
  });

  it("refuses a wrong result", () => {
    // @ts-expect-error the receipt is text
    processor(charge, () => ({ receipt: 1 }));
    // @ts-expect-error the receipt is missing
    processor(charge, async () => ({}));
    // @ts-expect-error a result is declared, so one must be returned
    processor(charge, async () => {});
    // @ts-expect-error a date is not JSON
    processor(plain, () => new Date(0));
    // @ts-expect-error there is no such field in the payload
    processor(charge, ({ payload }) => ({ receipt: payload.dollars }));
    // @ts-expect-error a bare number does not say its unit
    processor(charge, () => snooze({ after: 60 }));
    // @ts-expect-error a snooze says when
    processor(charge, () => snooze({}));
  });

  it("enqueues and reports with types too", () => {
    processor(plain, async ({ enqueue, progress, checkpoint, log, onCleanup, beat }) => {
      await enqueue(charge, { orderId: "o", cents: "1" }, { detach: true });
      progress(0.5, { note: "half" });
      await checkpoint([1, 2]);
      log("said", { a: 1 });
      onCleanup(async () => {});
      beat();
      // @ts-expect-error cents is missing
      await enqueue(charge, { orderId: "o" });
      // @ts-expect-error a date is not JSON
      await checkpoint(new Date(0));
      // @ts-expect-error a fraction is a number
      progress("half");
      return null;
    });
  });
});

describe("a worker", () => {
  it("takes processors, queues and middleware", () => {
    const processors = [processor(charge, () => ({ receipt: "r" })), processor(plain, () => null)];
    engine.work({ processors, queues: { default: { concurrency: 5 } }, drain: "5s", maxStuck: 3 });
    engine.work({ processors, middleware: [async (context, next) => (context.attempt > 1 ? next() : null)] });
    // @ts-expect-error concurrency belongs to a queue
    engine.work({ processors, concurrency: 5 });
    // @ts-expect-error a queue says its concurrency
    engine.work({ processors, queues: { default: {} } });
    // @ts-expect-error a bare number does not say its unit
    engine.work({ processors, drain: 5 });
    // @ts-expect-error processors are needed
    engine.work({ queues: { default: { concurrency: 5 } } });
    // @ts-expect-error a definition is no processor
    engine.work({ processors: [charge] });
    // @ts-expect-error middleware calls next, which takes nothing
    engine.work({ processors, middleware: [async (_context, next) => next(1)] });
  });
});

describe("the rest of an engine", () => {
  it("events are known by name, and carry what they tell", () => {
    engine.on("job.timeout", (event) => {
      expectTypeOf(event.name).toEqualTypeOf<"job.timeout">();
      expectTypeOf(event.error).toEqualTypeOf<ErrorRecord | undefined>();
    });
    engine.on("worker.blocked", ({ jobs, gap }) => [jobs.map(({ id }) => id), gap.toFixed()]);
    expectTypeOf(engine.on("store.error", () => {})).toEqualTypeOf<() => void>();
    // @ts-expect-error no such event
    engine.on("job.timed_out", () => {});
    // @ts-expect-error a store error names no job
    engine.on("store.error", ({ id }) => id);
    expectTypeOf(engine.counters()).toEqualTypeOf<CounterSnapshot>();
  });

  it("operators' calls", () => {
    engine.extend("id", { attempt: "1h", total: "none", heartbeat: { seconds: 5 } });
    engine.retry("id", { keepDeadline: true });
    engine.queues.configure("mail", { timeouts: { attempt: "5m" }, retention: "0s" });
    engine.close({ drain: "5s" });
    // @ts-expect-error wait cannot be extended
    engine.extend("id", { wait: "1h" });
    // @ts-expect-error a bare number does not say its unit
    engine.extend("id", { attempt: 60 });
    // @ts-expect-error no such option
    engine.retry("id", { force: true });
    // @ts-expect-error a queue has no payload
    engine.queues.configure("mail", { payload: 1 });
    // @ts-expect-error a bare number does not say its unit
    engine.close({ drain: 5 });
  });

  it("opening one", () => {
    openEngine({ store: "memory:", timeouts: { attempt: "5m" }, retry: { attempts: 5 } });
    // @ts-expect-error a store is needed
    openEngine({});
    // @ts-expect-error no such option
    openEngine({ store: "memory:", queue: "a" });
    // @ts-expect-error a bare number does not say its unit
    openEngine({ store: "memory:", timeouts: { attempt: 5 } });
  });
});

describe("a job", () => {
  it("is a view whose documents are values, and whose instants are numbers", () => {
    expectTypeOf(engine.load("id")).toEqualTypeOf<Promise<Job | null>>();
    expectTypeOf<Job["payload"]>().toEqualTypeOf<Json>();
    expectTypeOf<Job["finishedAt"]>().toEqualTypeOf<number | null>();
    expectTypeOf<Job["deadlines"]["total"]>().toEqualTypeOf<number | null>();
  });

  it("has the result of its definition on a typed handle", () => {
    expectTypeOf(engine.job("id", charge).load()).toEqualTypeOf<Promise<Job<{ receipt: string }> | null>>();
    expectTypeOf(engine.job("id", charge).cancel()).toEqualTypeOf<Promise<Job<{ receipt: string }>>>();
  });

  it("shows nothing that only curfew needs", () => {
    const job = {} as Job;
    // @ts-expect-error the rank orders claims
    job.rank;
    // @ts-expect-error the fence guards writes
    job.fence;
    // @ts-expect-error the revision guards writes
    job.rev;
  });

  it("is listed by find alone", () => {
    expectTypeOf(engine.find({ queue: "mail" }))
      .resolves.toHaveProperty("jobs")
      .toEqualTypeOf<readonly Job[]>();
    // @ts-expect-error there is no such condition
    engine.find({ quue: "mail" });
    // @ts-expect-error queues are paused by engine.queues
    engine.pause("mail");
  });
});

describe("batchProcessor", () => {
  it("takes verdicts that fit the result of the definition", () => {
    const batch = { size: 2, within: "1s" } as const;
    batchProcessor(charge, batch, ({ jobs }) => {
      expectTypeOf(jobs[0]?.payload).toEqualTypeOf<{ orderId: string; cents: number } | undefined>();
      jobs[0]?.settle({ receipt: "r" });
      jobs[0]?.settle(new Error("no"));
      // @ts-expect-error: the result has a receipt
      jobs[0]?.settle({ bill: 1 });
      return jobs.map(() => (jobs.length > 1 ? { receipt: "r" } : snooze({ after: "1m" })));
    });
    batchProcessor(plain, batch, () => {});
    batchProcessor(plain, batch, async ({ jobs }) => jobs.map(() => new Error("no")));
    // @ts-expect-error: the result has a receipt
    batchProcessor(charge, batch, () => [{ bill: 1 }]);
    // @ts-expect-error: a time needs its unit
    batchProcessor(plain, { size: 2, within: 50 }, () => {});
  });
});
