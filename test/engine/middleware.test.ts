import { describe, expect, it } from "vitest";
import {
  constant,
  type Middleware,
  processor,
  type StopError,
  TimeoutError,
  type TimeoutOptions,
  type Worker,
} from "../../src/index.ts";
import { deaf, type Handle, jobWith, obedient, openStage, START } from "./stage.ts";

describe("2 middleware (3.7)", () => {
  const wrap =
    (name: string, seen: string[]): Middleware =>
    async (_context, next) => {
      seen.push(`> ${name}`);
      try {
        return await next();
      } finally {
        seen.push(`< ${name}`);
      }
    };

  it("runs outer to inner around the attempt, and its value is the result", async () => {
    const stage = await openStage();
    const seen: string[] = [];
    const { definition, processors } = jobWith(() => {
      seen.push("handler");
      return 1;
    });
    const doubled: Middleware = async (_context, next) => ((await next()) as number) * 2;
    stage.work(processors, { middleware: [wrap("outer", seen), doubled, wrap("inner", seen)] });
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    await expect(job.result()).resolves.toBe(2);
    expect(seen).toEqual(["> outer", "> inner", "handler", "< inner", "< outer"]);
  });

  it.each([
    ["a handler that obeys", obedient, "5s"],
    ["a handler that is deaf, at its hard deadline", deaf, "7s"],
  ])("sees the TimeoutError of %s, and the retry policy sees it too", async (_name, run, after) => {
    const stage = await openStage();
    const seen: [string, number][] = [];
    const { definition, processors } = jobWith(run, {
      timeouts: { attempt: "5s", grace: "2s" },
      retry: { backoff: constant({ first: "1h" }) },
    });
    const spy: Middleware = async (_context, next) =>
      next().catch((error: Error) => {
        if (error instanceof TimeoutError) seen.push([error.kind, stage.now() - START]);
        throw error;
      });
    stage.work(processors, { middleware: [spy] });
    const job = await stage.engine.enqueue(definition);
    await stage.advance("7s");
    expect(seen).toEqual([["execution", Number(after.slice(0, 1)) * 1_000]]);
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["retryable", "timeout"]);
  });

  it.each([
    ["a stall", { heartbeat: "5s" }, async () => {}, "stalled", 5_000],
    ["a cancel, after its grace", { grace: "2s" }, (job) => job.cancel(), "cancelled", 2_000],
    [
      "a shutdown, after its grace",
      { grace: "2s" },
      (_job, worker) => void worker.close(),
      "shutdown",
      2_000,
    ],
  ] as [string, TimeoutOptions, (job: Handle, worker: Worker) => unknown, string, number][])(
    "a deaf handler ended by %s holds no middleware back",
    async (_name, timeouts, act, kind, after) => {
      const stage = await openStage();
      const seen: unknown[] = [];
      const { definition, processors } = jobWith(deaf, { timeouts, retry: { attempts: 1 } });
      const spy: Middleware = async (_context, next) =>
        next().catch((error) => {
          seen.push([(error as StopError).kind, stage.now() - START]);
          throw error;
        });
      const worker = stage.work(processors, { middleware: [spy], drain: "0s" });
      const job = await stage.engine.enqueue(definition);
      await stage.settle();
      await act(job, worker);
      await stage.advance("10s");
      expect(seen).toEqual([[kind, after]]);
    },
  );

  it("an error that the handler throws after our signal is the cause of the TimeoutError", async () => {
    const stage = await openStage();
    const causes: unknown[] = [];
    const { definition, processors } = jobWith(
      async (context) => {
        await obedient(context).catch(() => {});
        throw new RangeError("while cleaning up");
      },
      { timeouts: { attempt: "5s" } },
    );
    const spy: Middleware = async (_context, next) =>
      next().catch((error) => {
        causes.push(error instanceof TimeoutError && error.cause);
        throw error;
      });
    stage.work(processors, { middleware: [spy] });
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    expect(causes).toEqual([expect.any(RangeError)]);
    expect((await stage.load(job)).errors?.[0]).toMatchObject({
      type: "timeout",
      cause: { type: "RangeError", message: "while cleaning up" },
    });
  });

  it("a second next() is refused", async () => {
    const stage = await openStage();
    let runs = 0;
    const { definition, processors } = jobWith(() => ++runs);
    const twice: Middleware = async (_context, next) => {
      await next();
      return next();
    };
    stage.work(processors, { middleware: [twice] });
    const job = await stage.engine.enqueue(definition, null, { retry: { attempts: 1 } });
    await stage.settle();
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.message]).toEqual([
      "discarded",
      "next() was called twice by one middleware",
    ]);
    expect(runs).toBe(1);
  });

  it("middleware that throws or rejects fails the attempt", async () => {
    const stage = await openStage();
    const { definition } = jobWith(() => 1);
    const bad = (() => {
      throw new TypeError("no");
    }) as unknown as Middleware;
    stage.work([processor(definition, () => 1)], { middleware: [bad] });
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "TypeError", attempt: 1 });
  });

  it("a handler inside middleware that ignores its signal stays stuck until it ends", async () => {
    const stage = await openStage();
    let end = () => {};
    const { definition, processors } = jobWith(() => new Promise<void>((resolve) => (end = resolve)), {
      timeouts: { attempt: "5s", grace: "1s" },
      retry: { attempts: 1 },
    });
    const worker = stage.work(processors, { middleware: [async (_context, next) => next()] });
    await stage.engine.enqueue(definition);
    await stage.advance("10s");
    expect(worker.status()).toMatchObject({ stuck: 1, running: 0 });
    end();
    await stage.settle();
    expect(worker.status().stuck).toBe(0);
  });
});
