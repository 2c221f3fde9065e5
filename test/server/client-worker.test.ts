import { describe, expect, it } from "vitest";
import { type AttemptContext, Discard, type StopError, snooze, TimeoutError } from "../../src/index.ts";
import { jobsOf, logOf } from "../../src/testing/read-store.ts";
import { deaf, jobWith, obedient } from "../engine/stage.ts";
import { openClientStage } from "./client-stage.ts";

const once = { retry: { attempts: 1 } } as const;

describe("a remote worker (1, 2, 3.4, 3.6, 3.7, 4, 4.4, 4.7, 5.1, 5.3)", () => {
  it("runs a job and reports its result", async () => {
    const { client, work, advance, load } = await openClientStage();
    const { definition, processors } = jobWith(
      ({ payload, attempt, id }) => ({ payload, attempt, id }) as never,
    );
    work(processors);
    await advance("10ms");
    const job = await client.enqueue(definition, { a: [1] });
    const result = job.result({ within: "5s" });
    await advance("100ms");
    expect(await result).toEqual({ payload: { a: [1] }, attempt: 1, id: job.id });
    const row = await load(job);
    expect([row.state, row.policy?.hears]).toEqual(["completed", true]);
    // It was waiting for a job at the server, so nothing had to be polled.
    expect((row.startedAt as number) - row.createdAt).toBeLessThan(10);
  });

  it("at the attempt timeout the signal aborts, with the reason", async () => {
    const { client, work, advance, load } = await openClientStage();
    const heard: unknown[] = [];
    const run = (context: AttemptContext) => {
      context.signal.addEventListener("abort", () => heard.push(context.signal.reason));
      return obedient(context);
    };
    const { definition, processors } = jobWith(run, { ...once, timeouts: { attempt: "2s", grace: "1s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("1999ms");
    expect(heard).toEqual([]);
    await advance("1s");
    const [reason] = heard as [TimeoutError];
    expect(reason).toBeInstanceOf(TimeoutError);
    expect([reason.kind, reason.limit]).toEqual(["execution", 2_000]);
    const row = await load(job);
    expect([row.state, row.errors?.[0]?.type, row.errors?.[0]?.cause?.type]).toEqual([
      "discarded",
      "timeout",
      "TimeoutError",
    ]);
    expect(row.finishedAt as number).toBe(row.softAt);
  });

  it("the end of the total is reported as total and ends the job", async () => {
    const { client, work, advance, load } = await openClientStage();
    let reason: unknown;
    const run = (context: AttemptContext) =>
      obedient(context).finally(() => (reason = context.signal.reason));
    const { definition, processors } = jobWith(run, { timeouts: { total: "3s", grace: "1s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("4s");
    expect([(reason as TimeoutError).kind, (reason as TimeoutError).limit]).toEqual(["total", 3_000]);
    expect((await load(job)).errors?.map(({ type }) => type)).toEqual(["total_timeout"]);
  });

  it("a job that waited too long is never handed out", async () => {
    const { client, work, advance, load } = await openClientStage();
    let runs = 0;
    const { definition, processors } = jobWith(() => void runs++, { timeouts: { wait: "1s" } });
    const job = await client.enqueue(definition);
    await advance("1s");
    work(processors);
    await advance("5s");
    expect([runs, (await load(job)).errors?.[0]?.type]).toEqual([0, "enqueue_ttl_expired"]);
  });

  it("a handler that succeeds within its grace is completed, and late", async () => {
    const { client, engine, work, advance, load, sleep } = await openClientStage();
    const { definition, processors } = jobWith(
      async () => {
        await sleep(2_500);
        return "done";
      },
      { ...once, timeouts: { attempt: "2s", grace: "1s" } },
    );
    work(processors);
    const job = await client.enqueue(definition);
    await advance("3s");
    expect([(await load(job)).state, engine.counters().late]).toEqual(["completed", 1]);
  });

  it("the worker ends a deaf handler at its hard deadline", async () => {
    const { client, work, advance, load, told, wire, sleep } = await openClientStage();
    const run = async ({ log }: AttemptContext) => {
      await sleep(2_950);
      log("too late to be kept");
      return deaf();
    };
    const { definition, processors } = jobWith(run, { ...once, timeouts: { attempt: "2s", grace: "1s" } });
    const worker = work(processors, { queues: { default: { concurrency: 1 } } });
    const job = await client.enqueue(definition);
    await advance("2999ms");
    expect((await load(job)).state).toBe("active");
    await advance("5ms");
    const row = await load(job);
    expect([row.state, row.errors?.[0]?.type, row.errors?.[0]?.forced]).toEqual([
      "discarded",
      "timeout",
      true,
    ]);
    expect(told.map(({ name }) => name)).toEqual(["job.stuck", "worker.unready"]);
    expect(worker.status()).toMatchObject({ ready: false, stuck: 1, running: 0 });
    expect(client.counters().lost).toBe(0);
    await advance("1s");
    expect(wire.sent("/logs")).toEqual([]);
  });

  it("a handler that falls silent stalls where a heartbeat is named, though its worker lives", async () => {
    const { client, work, advance, load, wire } = await openClientStage();
    let reason: unknown;
    const run = async (context: AttemptContext) => {
      context.beat();
      await obedient(context).catch((error) => (reason = error));
    };
    const { definition, processors } = jobWith(run, { ...once, timeouts: { heartbeat: "4s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("3900ms");
    expect((await load(job)).state).toBe("active");
    await advance("300ms");
    expect((await load(job)).errors?.[0]).toMatchObject({ type: "stalled", kind: "stalled", limit: 4_000 });
    expect((reason as TimeoutError).kind).toBe("stalled");
    // One beat of the handler, one for the server: the worker's own life is no sign of life of the handler.
    const beats = wire.sent("/heartbeat").filter(({ body }) => (body.active_jobs as []).length > 0);
    expect(beats.length).toBe(1);
  });

  it("beats, progress and checkpoints of the handler keep it alive", async () => {
    const { client, work, advance, load, sleep } = await openClientStage();
    const run = async ({ beat, progress, checkpoint }: AttemptContext) => {
      for (const sign of [beat, () => progress(0.5, "half"), () => checkpoint({ at: 3 }), beat]) {
        await sleep(1_500);
        await sign();
      }
    };
    const { definition, processors } = jobWith(run, { ...once, timeouts: { heartbeat: "2s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("7s");
    expect((await load(job)).state).toBe("completed");
  });

  it("a long silent await does not stall a job without a heartbeat", async () => {
    const { client, work, advance, load, sleep, wire } = await openClientStage();
    const { definition, processors } = jobWith(() => sleep(150_000));
    work(processors);
    const job = await client.enqueue(definition);
    await advance("2m");
    expect((await load(job)).state).toBe("active");
    await advance("31s");
    expect((await load(job)).state).toBe("completed");
    // About once a second the server is asked, but only every five is the row written.
    const beats = wire.sent("/heartbeat");
    expect(beats.length).toBeGreaterThan(150);
    const written = beats.filter(({ body }) => (body.active_jobs as unknown[]).length > 0);
    expect(written.length).toBeGreaterThan(25);
    expect(written.length).toBeLessThan(35);
  });

  it("a handler hears a cancel within a second, and its report does not count", async () => {
    const { client, engine, work, advance, load, wire } = await openClientStage();
    let heardAt = 0;
    let reason: unknown;
    const run = (context: AttemptContext) =>
      obedient(context).catch((error) => {
        heardAt = engine.now();
        reason = error;
        context.progress(0.9);
        return "too late";
      });
    const { definition, processors } = jobWith(run);
    work(processors);
    const job = await client.enqueue(definition);
    await advance("3300ms");
    const cancelledAt = engine.now();
    const cancelling = job.cancel();
    await advance("2s");
    expect((await cancelling).state).toBe("cancelled");
    expect(heardAt - cancelledAt).toBeLessThanOrEqual(1_000);
    expect((reason as StopError).kind).toBe("cancelled");
    expect([(await load(job)).state, (await load(job)).result]).toEqual(["cancelled", null]);
    expect([wire.sent("/ack"), wire.sent("/nack"), wire.sent("/progress")]).toEqual([[], [], []]);
  });

  it("an extension reaches the running handler", async () => {
    const { client, work, advance, load, sleep } = await openClientStage();
    const deadlines: (number | null)[] = [];
    const run = async ({ remaining }: AttemptContext) => {
      for (let turn = 0; turn < 4; turn++) {
        deadlines.push(Math.ceil(remaining() / 1_000));
        await sleep(1_500);
      }
    };
    const { definition, processors } = jobWith(run, { ...once, timeouts: { attempt: "3s", grace: "0s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("100ms");
    const extending = job.extend({ attempt: "10s" });
    await advance("10s");
    await extending;
    expect((await load(job)).state).toBe("completed");
    expect(deadlines).toEqual([3, 9, 7, 6]);
  });

  it("a snooze comes again later and spends nothing; Discard ends the job", async () => {
    const { client, work, advance, load } = await openClientStage();
    let runs = 0;
    const { definition, processors } = jobWith(() => {
      if (++runs === 1) return snooze({ after: "10s" });
      throw new Discard("no use");
    });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("100ms");
    expect([(await load(job)).state, (await load(job)).attempt]).toEqual(["scheduled", 0]);
    await advance("11s");
    const row = await load(job);
    expect([runs, row.state, row.attempt, row.errors?.[0]?.type]).toEqual([2, "discarded", 1, "Discard"]);
  });

  it("hands its notes over before its verdict, and the checkpoint to the next attempt", async () => {
    const { client, engine, work, advance, load } = await openClientStage();
    const found: unknown[] = [];
    const { definition, processors } = jobWith(
      async ({ lastCheckpoint, checkpoint, log, progress }) => {
        found.push(lastCheckpoint);
        if (lastCheckpoint) return "done";
        await checkpoint({ page: 7 });
        log("read page 7", { page: 7 });
        progress(0.7, { page: 7 });
        throw Object.assign(new Error("no more"), { code: "E_PAGE" });
      },
      { retry: { attempts: 2 } },
    );
    work(processors);
    const job = await client.enqueue(definition);
    await advance("50ms");
    const failed = await load(job);
    expect(failed.errors?.[0]).toMatchObject({ type: "Error", code: "E_PAGE", message: "no more" });
    expect(failed.errors?.[0]?.stack).toContain("client-worker.test.ts");
    await advance("5s");
    expect([found, (await load(job)).state]).toEqual([[undefined, { page: 7 }], "completed"]);
    expect(await logOf(engine.store, job.id)).toMatchObject([
      { message: "read page 7", fields: { page: 7 }, attempt: 1 },
    ]);
  });

  it("a job enqueued by a handler inherits what is left of its total", async () => {
    const { client, work, advance, load } = await openClientStage();
    const child = jobWith(deaf, {}, "test.child");
    let made: { id: string } | undefined;
    const parent = jobWith(
      async ({ enqueue }) => {
        made = await enqueue(child.definition, undefined);
      },
      { timeouts: { total: "1m" } },
    );
    work(parent.processors);
    const job = await client.enqueue(parent.definition);
    await advance("100ms");
    const row = await load(made as { id: string });
    expect([row.totalAt, row.options?.inheritedFrom]).toEqual([(await load(job)).totalAt, job.id]);
  });

  it("wraps handlers in middleware, which sees the timeout", async () => {
    const { client, work, advance } = await openClientStage();
    const seen: unknown[] = [];
    const { definition, processors } = jobWith(
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("mine")))),
      { ...once, timeouts: { attempt: "1s", grace: "1s" } },
    );
    work(processors, {
      middleware: [
        async (context, next) => {
          seen.push(context.type);
          return next().catch((error) => {
            seen.push(error.name, error.cause.message);
            throw error;
          });
        },
      ],
    });
    await client.enqueue(definition);
    await advance("2s");
    expect(seen).toEqual(["test.job", "TimeoutError", "mine"]);
  });

  it("gives back a job that it has no processor for, unspent and without an error", async () => {
    const { client, work, advance, load } = await openClientStage();
    const { definition } = jobWith(deaf, {}, "test.unknown");
    work(jobWith(deaf).processors);
    const job = await client.enqueue(definition);
    await advance("100ms");
    const row = await load(job);
    expect([row.state, row.attempt, row.errors]).toEqual(["scheduled", 0, null]);
  });

  it("a worker's definition fills in settings that the producer left out", async () => {
    const { engine, work, advance, wire, server } = await openClientStage();
    const { processors } = jobWith(deaf, { timeouts: { attempt: "7s" }, retry: { attempts: 9 } });
    work(processors);
    const body = JSON.stringify({ type: "test.job", args: [] });
    const request = new Request("http://127.0.0.1/ojs/v1/jobs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    await server.fetch(request);
    await advance("100ms");
    const [row] = await jobsOf(engine.store);
    expect([row?.policy?.attempt, row?.policy?.retry.attempts]).toEqual([7_000, 9]);
    expect(wire.sent("/fetch").length).toBeGreaterThan(0);
  });

  it("a code of a handler's own error does not override the retry policy", async () => {
    const { client, work, advance, load } = await openClientStage();
    const { definition, processors } = jobWith(
      () => {
        throw Object.assign(new Error("nope"), { code: "FAIL" });
      },
      { retry: { attempts: 2 } },
    );
    work(processors);
    const job = await client.enqueue(definition);
    await advance("100ms");
    const row = await load(job);
    expect([row.state, row.errors?.[0]?.details]).toEqual(["retryable", { code: "FAIL" }]);
  });

  it("a result of null is null, and nothing is undefined", async () => {
    const { client, work, advance } = await openClientStage();
    const { definition, processors } = jobWith(({ payload }) => payload);
    const nothing = jobWith(() => {}, {}, "test.nothing");
    work([...processors, ...nothing.processors]);
    const jobs = [await client.enqueue(definition, null), await client.enqueue(nothing.definition)];
    const results = Promise.all(jobs.map((job) => job.result()));
    await advance("1s");
    expect(await results).toEqual([null, undefined]);
  });

  it("fetches no more than it has slots for", async () => {
    const { client, work, advance, engine } = await openClientStage();
    const { definition, processors } = jobWith(deaf);
    const worker = work(processors, { queues: { default: { concurrency: 3 } } });
    const adding = client.enqueueMany(definition, Array(10).fill(null));
    await advance("5s");
    await adding;
    expect([worker.status().running, worker.status().held]).toEqual([3, 0]);
    expect(await engine.queues.depth()).toMatchObject({ active: 3, available: 7 });
  });
});
