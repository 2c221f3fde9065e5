import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import {
  type AttemptContext,
  defineJob,
  type Engine,
  openEngine,
  type Processor,
  processor,
  silentLogger,
} from "../../src/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { fileFolder } from "../support/folders.ts";

/** What operators look at and do, on the real engine over each store. */

const folder = fileFolder();
let database: TestPostgres;
let opened = 0;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const STORES: Record<string, () => string> = {
  memory: () => "memory:",
  sqlite: () => `sqlite:${join(folder, `${opened}.db`)}`,
  postgres: () => `${database.url}?schema=operators_${opened}`,
};

function job(type: string) {
  const retry = { attempts: 2, backoff: { kind: "constant", first: 1, max: 1, jitter: false } } as never;
  return defineJob({ type, retry });
}

/** Resolves with the first event of this name. */
function next(engine: Engine, name: "job.progress" | "job.discarded" | "job.completed"): Promise<unknown> {
  return new Promise((resolve) => {
    const off = engine.on(name, (event) => {
      off();
      resolve(event);
    });
  });
}

describe.each(Object.keys(STORES))("on %s", (name) => {
  const open = async (): Promise<Engine> => {
    opened += 1;
    const engine = await openEngine({ store: (STORES[name] as () => string)(), logger: silentLogger });
    onTestFinished(() => engine.close({ drain: "0s" }));
    return engine;
  };
  const work = (engine: Engine, ...processors: Processor[]) => engine.work({ processors });

  it("progress is told live and read from outside, starts anew with each attempt, and is 1 at the end", async () => {
    const engine = await open();
    const steps = job("steps");
    const seen: unknown[] = [];
    work(
      engine,
      processor(steps, async (context: AttemptContext) => {
        seen.push((await engine.job(context.id).progress()).value);
        context.progress(0.5, "half");
        await context.checkpoint({ at: 5 });
        seen.push(await engine.job(context.id).progress());
        if (context.attempt === 1) throw new Error("again");
      }),
    );
    const told = next(engine, "job.progress");
    const handle = await engine.enqueue(steps);
    await handle.result({ within: "1m" });
    expect(await told).toMatchObject({ id: handle.id, progress: { value: 0.5, note: "half" } });
    const half = { state: "active", value: 0.5, note: "half" };
    expect(seen).toMatchObject([null, half, null, half]);
    expect(await handle.progress()).toMatchObject({ state: "completed", attempt: 2, value: 1 });
    await expect(engine.job("00000000-0000-7000-8000-000000000000").progress()).rejects.toThrow("no job");
  });

  it("a checkpoint is kept across attempts and a manual retry, read and cleared by operators", async () => {
    const engine = await open();
    const saves = job("saves");
    const begun: unknown[] = [];
    work(
      engine,
      processor(saves, async (context: AttemptContext) => {
        begun.push(context.lastCheckpoint ?? null);
        await context.checkpoint({ step: begun.length });
        await expect(engine.job(context.id).clearCheckpoint()).rejects.toThrow("running");
        throw new Error("again");
      }),
    );
    let ended = next(engine, "job.discarded");
    const handle = await engine.enqueue(saves);
    await ended;
    expect(begun).toEqual([null, { step: 1 }]);
    expect(await handle.checkpoint()).toEqual({ state: { step: 2 }, sequence: 1 });
    ended = next(engine, "job.discarded");
    await handle.retry();
    await ended;
    expect(begun[2]).toEqual({ step: 2 });
    await handle.clearCheckpoint();
    await handle.clearCheckpoint();
    expect(await handle.checkpoint()).toBeNull();
  });

  it("an outsider saves a checkpoint with its step and metadata on a job that waits, counted anew once cleared", async () => {
    const engine = await open();
    const { notes } = engine.service;
    const handle = await engine.enqueue(job("waits"), undefined, { delay: "1h" });
    const note = { stepIndex: 3, metadata: { by: "hand" } };
    await notes.checkpoint(handle.id, {}, { a: 1 }, note);
    expect(await handle.checkpoint()).toEqual({ state: { a: 1 }, sequence: 1, ...note });
    await notes.checkpoint(handle.id, {}, { a: 2 });
    expect(await handle.checkpoint()).toEqual({ state: { a: 2 }, sequence: 2 });
    await notes.checkpoint(handle.id, {}, null);
    await notes.checkpoint(handle.id, {}, { a: 3 });
    expect(await handle.checkpoint()).toEqual({ state: { a: 3 }, sequence: 1 });
    await handle.cancel();
    expect(await notes.checkpoint(handle.id, {}, { a: 4 })).toMatchObject({ ok: false, because: "lost" });
    expect(await handle.checkpoint()).toMatchObject({ state: { a: 3 } });
  });

  it("logs are read by the page, and an attempt that logs without end is cut short and says so", async () => {
    const engine = await open();
    const talks = job("talks");
    work(
      engine,
      processor(talks, async ({ log }: AttemptContext) => {
        for (let line = 0; line < 1_500; line++) log(`line ${line}`, { line });
      }),
    );
    const handle = await engine.enqueue(talks);
    await handle.result({ within: "1m" });
    const lines: string[] = [];
    for (let after: number | null = null; ; ) {
      const page = await handle.logs({ after, limit: 400 });
      lines.push(...page.lines.map(({ message }) => message));
      after = page.cursor;
      if (after === null) break;
    }
    expect(lines).toHaveLength(1_000);
    expect(lines[998]).toBe("line 998");
    expect(lines[999]).toContain("is full");
    await expect(handle.logs({ limit: 0 })).rejects.toThrow("logs.limit");
    await expect(handle.logs({ after: -1 })).rejects.toThrow("logs.after");
  });

  it("a result is kept for its retention and then gone", async () => {
    const engine = await open();
    const answers = defineJob({ type: "answers", retention: { completed: "1ms" } });
    work(
      engine,
      processor(answers, async () => ({ answer: 42 })),
    );
    const ended = next(engine, "job.completed");
    const handle = await engine.enqueue(answers);
    await ended;
    expect((await rowOf(engine.store, handle.id))?.result).toBe('{"answer":42}');
    // The store's clock is real here: the instant of its end must be over before it can be pruned.
    await expect
      .poll(async () => {
        await engine.pruneOnce();
        return rowOf(engine.store, handle.id);
      })
      .toBeNull();
    await expect(handle.result({ within: "1m" })).rejects.toMatchObject({ code: "result_gone" });
  });

  it("dead letters are found, retried, deleted and counted, and the statistics know of them", async () => {
    const engine = await open();
    const dies = defineJob({ type: "dies", retry: { attempts: 1, onExhausted: "dead-letter" } });
    work(
      engine,
      processor(dies, () => {
        throw new TypeError("\u0000 no");
      }),
    );
    await engine.enqueueMany(dies, new Array(30).fill(null));
    await expect.poll(() => engine.deadLetters.count()).toBe(30);
    const { jobs, cursor } = await engine.deadLetters.list(
      { errorType: "TypeError" },
      { newestFirst: true, limit: 10 },
    );
    expect(jobs).toHaveLength(10);
    const rest = await engine.deadLetters.list(
      { errorType: "TypeError" },
      { newestFirst: true, after: cursor },
    );
    expect(new Set([...jobs, ...rest.jobs].map(({ id }) => id)).size).toBe(30);
    expect(await engine.deadLetters.retryAll({ ids: jobs.map(({ id }) => id) })).toMatchObject({ done: 10 });
    await expect.poll(() => engine.deadLetters.count()).toBe(30);
    expect(await engine.deadLetters.deleteAll({ errorCode: "handler_error" }, { limit: 12 })).toMatchObject({
      done: 12,
    });
    expect(await engine.deadLetters.deleteAll({ all: true })).toMatchObject({ done: 18 });
    expect(await engine.deadLetters.count()).toBe(0);
    const { total, groups } = await engine.stats({ type: "dies" });
    expect(total).toMatchObject({ enqueued: 30, discarded: 40, deadLettered: 40, completed: 0 });
    expect(groups).toMatchObject([{ queue: "default", type: "dies", started: 40 }]);
  });
});
