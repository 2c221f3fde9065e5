import { describe, expect, it } from "vitest";
import { type AttemptContext, type StopError, TimeoutError } from "../../src/index.ts";
import { createServer } from "../../src/server/app.ts";
import { createDeferred } from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { deaf, jobWith, obedient } from "../engine/stage.ts";
import { openClientStage } from "./client-stage.ts";

const once = { retry: { attempts: 1 } } as const;

describe("a worker that is cut off (3.1, 3.4, 3.8)", () => {
  it("loses its job to another, and nothing it reports afterwards counts", async () => {
    const { another, advance, load, wire, client, work, told, sleep } = await openClientStage();
    const reasons: unknown[] = [];
    const ran: string[] = [];
    const run = async ({ signal, progress, attempt }: AttemptContext) => {
      ran.push(`began ${attempt}`);
      signal.addEventListener("abort", () => reasons.push(signal.reason));
      await sleep(attempt === 1 ? 100_000 : 1_000);
      progress(0.99, `of attempt ${attempt}`);
      ran.push(`ended ${attempt}`);
      return `attempt ${attempt}`;
    };
    const { definition, processors } = jobWith(run, {
      timeouts: { heartbeat: "10s" },
      retry: { attempts: 3 },
    });
    work(processors);
    const job = await client.enqueue(definition, null, { timeouts: { heartbeat: "none" } });
    const beaten = await client.enqueue(definition);
    await advance("1s");
    wire.cut();
    another().client.work({ processors });
    await advance("30s");
    // The one whose silence is limited was taken back and done by the other; the one without a limit still waits for us.
    const row = await load(beaten);
    expect([row.state, row.result, row.attempt]).toEqual(["completed", '"attempt 2"', 2]);
    expect(row.errors?.map(({ type }) => type)).toEqual(["stalled"]);
    wire.mend();
    await advance("80s");
    expect((await load(job)).result).toBe('"attempt 1"');
    expect((await load(beaten)).result).toBe('"attempt 2"');
    expect((await load(beaten)).progress).toContain("of attempt 2");
    expect(reasons.map((reason) => (reason as StopError).kind)).toEqual(["stalled"]);
    expect(told).toMatchObject([
      { name: "worker.unready" },
      { name: "job.stuck" },
      { name: "job.lost", id: beaten.id },
      { name: "job.unstuck" },
    ]);
  });

  it("a worker hears that its job is lost with its next answered beat", async () => {
    const { advance, load, wire, client, work, told, another } = await openClientStage();
    let reason: unknown;
    const run = (context: AttemptContext) => obedient(context).catch((error) => (reason = error));
    const { definition, processors } = jobWith(run, once);
    work(processors);
    const job = await client.enqueue(definition);
    await advance("1s");
    wire.cut();
    another();
    // Nobody named a heartbeat: after a minute without a word the server gives the worker up.
    await advance("65s");
    expect((await load(job)).errors?.[0]?.type).toBe("stalled");
    expect(reason).toBeUndefined();
    wire.mend();
    await advance("6s");
    expect((reason as StopError).kind).toBe("lost");
    expect([told.map(({ name }) => name), client.counters().lost]).toEqual([
      ["worker.unready", "job.lost"],
      1,
    ]);
    expect([wire.sent("/ack"), wire.sent("/nack")]).toEqual([[], []]);
  });

  it("a job that is fetched again stops its old attempt", async () => {
    const { advance, load, wire, client, work } = await openClientStage();
    const reasons: unknown[] = [];
    const run = (context: AttemptContext) =>
      context.attempt === 2
        ? "done"
        : obedient(context).catch((error) => {
            reasons.push(error.kind);
            return "too late";
          });
    const { definition, processors } = jobWith(run);
    work(processors);
    const job = await client.enqueue(definition);
    await advance("1s");
    // Only the beats get lost: the server takes the job for abandoned and hands it to the next worker that asks.
    wire.fate = ({ path }) => (path === "/workers/heartbeat" ? "unsent" : "served");
    await advance("70s");
    expect([(await load(job)).result, reasons, client.counters().lost]).toEqual(['"done"', ["lost"], 1]);
    expect(wire.sent("/ack").length).toBe(1);
  });

  it("a job whose time is up when its reply comes is not entered, and is given back unspent", async () => {
    const { advance, load, wire, client, work, sleep } = await openClientStage();
    const attempts: number[] = [];
    const { definition, processors } = jobWith(({ attempt }) => void attempts.push(attempt), {
      timeouts: { attempt: "1s", grace: "5s" },
    });
    let fetches = 0;
    wire.hold = ({ path }) =>
      path === "/workers/fetch" && fetches++ === 0 ? sleep(1_500) : Promise.resolve();
    const job = await client.enqueue(definition);
    work(processors);
    await advance("1400ms");
    expect((await load(job)).attempt).toBe(1);
    await advance("1s");
    const row = await load(job);
    expect([attempts, row.state, row.attempt, row.returns, row.errors]).toEqual([
      [1],
      "completed",
      1,
      1,
      null,
    ]);
  });

  it("keeps its handlers running through a restart of the server, and reports afterwards", async () => {
    const { advance, load, wire, client, work, engine, sleep } = await openClientStage();
    const { definition, processors } = jobWith(() => sleep(10_000).then(() => "done"));
    const worker = work(processors);
    const job = await client.enqueue(definition);
    await advance("5s");
    wire.cut();
    await advance("20s");
    expect(worker.status()).toMatchObject({ ready: false, running: 0, unreported: 1 });
    wire.server = createServer(engine);
    wire.mend();
    await advance("8s");
    const row = await load(job);
    expect([row.state, row.result, row.attempt, row.errors]).toEqual(["completed", '"done"', 1, null]);
    expect(worker.status()).toMatchObject({ ready: true, unreported: 0 });
    expect(client.counters().lost).toBe(0);
  });

  it("keeps the deadlines of its handlers by its own clock while the server is away", async () => {
    const { advance, wire, client, work, engine, system } = await openClientStage();
    let heardAt = 0;
    const run = (context: AttemptContext) =>
      obedient(context).catch((error) => {
        heardAt = engine.now();
        throw error;
      });
    const { definition, processors } = jobWith(run, { ...once, timeouts: { attempt: "10s", grace: "5s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("1s");
    const { softAt } = (await rowOf(engine.store, job.id)) as { softAt: number };
    wire.cut();
    // A jump of the machine's own clock neither fires nor postpones it.
    system.stepWall(3_600_000);
    await advance("20s");
    expect(heardAt - softAt).toBeGreaterThanOrEqual(0);
    expect(heardAt - softAt).toBeLessThan(5);
  });

  it("a report whose reply is lost is sent again, and is not taken for a lost job", async () => {
    const { advance, load, wire, client, work } = await openClientStage();
    const { definition, processors } = jobWith(() => "done");
    work(processors);
    let lost = 0;
    wire.fate = ({ path }) => (path === "/workers/ack" && lost++ < 2 ? "unanswered" : "served");
    const job = await client.enqueue(definition);
    await advance("2s");
    expect([(await load(job)).state, wire.sent("/ack").length]).toEqual(["completed", 3]);
    expect(client.counters().lost).toBe(0);
  });

  it("a verdict that cannot be reported keeps its job from being taken back", async () => {
    const { advance, load, wire, client, work } = await openClientStage();
    const { definition, processors } = jobWith(() => "done");
    work(processors);
    wire.fate = ({ path }) => (path === "/workers/ack" ? "unsent" : "served");
    const job = await client.enqueue(definition);
    await advance("2m");
    expect((await load(job)).state).toBe("active");
    wire.mend();
    await advance("8s");
    const row = await load(job);
    expect([row.state, row.attempt, row.errors]).toEqual(["completed", 1, null]);
  });

  it("a fetch whose reply is lost is asked again, and gets the same jobs", async () => {
    const { advance, load, wire, client, work } = await openClientStage();
    const { definition, processors } = jobWith(() => "done");
    const job = await client.enqueue(definition);
    let lost = 0;
    wire.fate = ({ path }) => (path === "/workers/fetch" && lost++ < 2 ? "unanswered" : "served");
    work(processors);
    await advance("2s");
    const row = await load(job);
    expect([row.state, row.attempt, row.errors]).toEqual(["completed", 1, null]);
    const [first, second, third] = wire.sent("/fetch").map(({ body }) => body.fetch_id);
    expect([first === second, second === third]).toEqual([true, true]);
  });

  it("a refused fetch makes the worker unready, and it goes on asking", async () => {
    const { advance, wire, client, work, load } = await openClientStage();
    const { definition, processors } = jobWith(() => "done");
    wire.answer = () => Response.json({ error: { code: "unauthorized", message: "who?" } }, { status: 401 });
    const worker = work(processors);
    await advance("3s");
    expect(worker.status()).toMatchObject({
      ready: false,
      reason:
        "fetches from queue default are failing: " +
        "fetch: the server answered 401: who?; pass openClient a key that the server knows",
    });
    wire.answer = () => undefined;
    const job = await client.enqueue(definition);
    await advance("6s");
    expect([worker.status().ready, (await load(job)).state]).toEqual([true, "completed"]);
  });

  it("a refused result becomes a failed attempt with the reason", async () => {
    const { advance, wire, client, work, load } = await openClientStage();
    const { definition, processors } = jobWith(() => "x".repeat(1_000), once);
    wire.answer = ({ path }) =>
      path === "/workers/ack"
        ? Response.json({ error: { code: "payload_too_large", message: "too much" } }, { status: 413 })
        : undefined;
    work(processors);
    const job = await client.enqueue(definition);
    await advance("100ms");
    expect((await load(job)).errors?.[0]).toMatchObject({
      code: "invalid_result",
      message: "The server refused the result: the server answered 413: too much",
    });
  });

  it("an unreadable job in a fetch reply does not affect the others", async () => {
    const { advance, client, work, load, wire } = await openClientStage();
    const { definition, processors } = jobWith(() => "done");
    const job = await client.enqueue(definition);
    let asked = 0;
    wire.answer = ({ path }) =>
      path === "/workers/fetch" && asked++ === 0
        ? Response.json({ jobs: [{ id: 1 }, "?", { id: job.id, type: "test.job", args: [] }] })
        : undefined;
    const worker = work(processors);
    await advance("2s");
    expect([(await load(job)).state, worker.status().ready]).toEqual(["completed", true]);
  });
});

describe("a slow wire (3.7, 3.11)", () => {
  it("deadlines fire never early, and late by at most the reply's duration", async () => {
    const { client, engine, work, advance, load, wire } = await openClientStage();
    wire.latency = 200;
    const heard: number[] = [];
    const run = (context: AttemptContext) =>
      obedient(context).catch((error) => {
        heard.push(engine.now());
        throw error;
      });
    const { definition, processors } = jobWith(run, { ...once, timeouts: { attempt: "5s", grace: "5s" } });
    work(processors);
    const enqueuing = client.enqueue(definition);
    await advance("3s");
    const job = await enqueuing;
    const { softAt } = (await load(job)) as { softAt: number };
    await advance("5s");
    const lateness = (heard[0] as number) - softAt;
    expect(lateness).toBeGreaterThanOrEqual(0);
    expect(lateness).toBeLessThanOrEqual(200);
    expect((await load(job)).errors?.[0]).toMatchObject({ type: "timeout", cause: { type: "TimeoutError" } });
  });

  it("a beat that was fast makes up for a fetch that was slow", async () => {
    const { client, engine, work, advance, load, wire, sleep } = await openClientStage();
    wire.hold = ({ path }) => (path === "/workers/fetch" ? sleep(800) : Promise.resolve());
    let heardAt = 0;
    const run = ({ signal }: AttemptContext) =>
      new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          heardAt = engine.now();
          resolve("late");
        }),
      );
    const { definition, processors } = jobWith(run, { timeouts: { attempt: "5s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("8s");
    const { softAt, state } = await load(job);
    expect(state).toBe("completed");
    expect(heardAt - (softAt as number)).toBeGreaterThanOrEqual(0);
    expect(heardAt - (softAt as number)).toBeLessThan(50);
  });

  it("the worker judges at the hard deadline, even if the server says first that its time is up", async () => {
    const { client, work, advance, load, wire, told, sleep } = await openClientStage();
    // The fetch is slow and the beats are not, so the server hears of the deadline before the worker's first guess.
    wire.hold = ({ path }) => (path === "/workers/fetch" ? sleep(400) : Promise.resolve());
    const { definition, processors } = jobWith(deaf, { ...once, timeouts: { attempt: "2s", grace: "1s" } });
    work(processors);
    // Started at many moments, so that a beat meets the hard deadline of one or the other.
    const jobs = [];
    for (let nth = 0; nth < 10; nth++) {
      jobs.push(client.enqueue(definition));
      await advance("90ms");
    }
    await advance("6s");
    for (const job of await Promise.all(jobs)) {
      const { finishedAt, hardAt, errors } = await load(job);
      expect(errors).toMatchObject([{ type: "timeout", forced: true }]);
      // A second later the sweep would have done it.
      expect((finishedAt as number) - (hardAt as number)).toBeLessThan(50);
    }
    expect(told.filter(({ name }) => name === "job.lost")).toEqual([]);
    expect(client.counters()).toMatchObject({ lost: 0, stuck: 10 });
  });
});

describe("a server that answers oddly", () => {
  it("a report that always fails does not block the others", async () => {
    const { client, engine, work, advance, load, wire } = await openClientStage();
    const { definition, processors } = jobWith(() => "done", once);
    const poison = await client.enqueue(definition);
    wire.answer = ({ path, body }) =>
      path.startsWith("/workers/") && body.job_id === poison.id
        ? Response.json({ error: { message: "oops" } }, { status: 500 })
        : undefined;
    const worker = work(processors);
    const other = await client.enqueue(definition);
    await advance("30s");
    expect((await load(other)).state).toBe("completed");
    await advance("2m");
    expect([worker.status().unreported, (await load(poison)).state]).toEqual([0, "discarded"]);
    expect(engine.counters().timeouts).toMatchObject([{ kind: "stalled" }]);
  });

  it("a beat that does not say what time it is changes no clock", async () => {
    const { client, work, advance, load, wire } = await openClientStage();
    const { definition, processors } = jobWith(obedient, {
      ...once,
      timeouts: { attempt: "3s", grace: "1s" },
    });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("100ms");
    wire.answer = ({ path }) => (path === "/workers/heartbeat" ? Response.json({ jobs: [] }) : undefined);
    await advance("5s");
    expect((await load(job)).errors).toMatchObject([{ type: "timeout" }]);
  });
});

describe("a standstill of the worker's event loop (3.1, 3.3)", () => {
  it("a job that arrived during it is entered only after the server has confirmed it", async () => {
    const { system, client, work, advance, load, wire, settle } = await openClientStage();
    const { definition, processors } = jobWith(() => "done");
    work(processors);
    await advance("50ms");
    const asked = wire.sent("/heartbeat").length;
    const enqueuing = client.enqueue(definition);
    system.pause(1_000);
    await settle();
    const job = await enqueuing;
    await advance("100ms");
    expect((await load(job)).state).toBe("completed");
    expect(wire.sent("/heartbeat").length).toBeGreaterThan(asked);
  });

  it("a job that was cancelled before its reply was heard is never entered", async () => {
    const { system, client, engine, work, advance, wire, settle } = await openClientStage();
    let runs = 0;
    const { definition, processors } = jobWith(() => void runs++);
    const reply = createDeferred<void>();
    wire.hold = ({ path }) => (path === "/workers/fetch" ? reply.promise : Promise.resolve());
    const job = await client.enqueue(definition);
    work(processors);
    await advance("100ms");
    await engine.cancel(job.id);
    system.pause(1_000);
    reply.resolve();
    await settle();
    await advance("2s");
    expect(runs).toBe(0);
  });

  it("a soft deadline that passed meanwhile is signalled at once, and never early", async () => {
    const { system, client, work, advance, load } = await openClientStage();
    let reason: unknown;
    const run = (context: AttemptContext) =>
      obedient(context).catch((error) => {
        reason = error;
      });
    const { definition, processors } = jobWith(run, { ...once, timeouts: { attempt: "5s" } });
    work(processors);
    const job = await client.enqueue(definition);
    await advance("1s");
    system.pause(10_000);
    await advance("1s");
    expect(reason).toBeInstanceOf(TimeoutError);
    expect((await load(job)).state).toBe("completed");
  });
});
