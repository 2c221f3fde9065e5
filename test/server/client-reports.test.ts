import { describe, expect, it } from "vitest";
import { type Random, randomInt, seededRandom } from "../../src/core/random.ts";
import { createDeferred } from "../../src/testing/index.ts";
import { jobWith } from "../engine/stage.ts";
import { type Call, openClientStage } from "./client-stage.ts";

const jobsOf = (call: Call | undefined) => (call?.body.jobs as readonly { job_id: string }[]) ?? [];
const isReport = ({ path }: Call) => path.startsWith("/workers/ack") || path.startsWith("/workers/nack");
const pathsOf = (calls: readonly Call[]) => calls.filter(isReport).map(({ path }) => path);
const absent = () => new Response('{"error":{"code":"not_found"}}', { status: 404 });

/** Ten jobs that end at once, with whatever a test does to the wire. */
async function tenAtOnce(run: (payload: number) => unknown = (payload) => payload) {
  const stage = await openClientStage();
  const latch = createDeferred<void>();
  const { definition, processors } = jobWith(async ({ payload }) => {
    await latch.promise;
    return run(payload as number);
  });
  const jobs = await stage.client.enqueueMany(definition, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const worker = stage.work(processors, { queues: { default: { concurrency: 20 } } });
  await stage.advance("1s");
  return { ...stage, definition, jobs, worker, open: () => latch.resolve() };
}

it("sends a lone report at once and by itself", async () => {
  const { client, work, wire, settle } = await openClientStage();
  const { definition, processors } = jobWith(() => "done");
  work(processors);
  await client.enqueue(definition);
  await settle();
  expect(pathsOf(wire.calls)).toEqual(["/workers/ack"]);
});

it("sends what ends while a report is under way together in the next request", async () => {
  const { open, settle, wire, jobs, load } = await tenAtOnce();
  open();
  await settle();
  expect(pathsOf(wire.calls)).toEqual(["/workers/ack", "/workers/ack/batch"]);
  expect(jobsOf(wire.sent("ck/batch")[0])).toHaveLength(9);
  const rows = await Promise.all(jobs.map(load));
  expect(rows.map(({ result }) => result)).toEqual(jobs.map((_, index) => String(index)));
});

it("keeps successes and failures apart", async () => {
  const { open, settle, wire, jobs, load } = await tenAtOnce((payload) => {
    if (payload % 2 === 1) throw new Error("odd");
  });
  open();
  await settle();
  expect(pathsOf(wire.calls).sort()).toEqual(["/workers/ack", "/workers/ack/batch", "/workers/nack/batch"]);
  const states = (await Promise.all(jobs.map(load))).map(({ state }) => state);
  expect(states.filter((state) => state === "completed")).toHaveLength(5);
  expect(states.filter((state) => state === "retryable")).toHaveLength(5);
});

it("waits no longer than 20 ms for a request that hangs", async () => {
  const { open, advance, wire, jobs, load, worker } = await tenAtOnce();
  const hung = createDeferred<void>();
  wire.hold = ({ path }) => (path === "/workers/ack" ? hung.promise : Promise.resolve());
  open();
  await advance("19ms");
  expect(pathsOf(wire.calls)).toEqual(["/workers/ack"]);
  await advance("1ms");
  expect(pathsOf(wire.calls)).toEqual(["/workers/ack", "/workers/ack/batch"]);
  expect((await Promise.all(jobs.map(load))).every(({ state }) => state === "completed")).toBe(true);
  expect(worker.status().unreported).toBe(1);
  hung.resolve();
});

it("a server without the batch route gets single reports, and the batch route is tried again later", async () => {
  const { open, settle, advance, wire, jobs, load, client, definition } = await tenAtOnce();
  wire.answer = ({ path }) => (path.endsWith("ck/batch") ? absent() : undefined);
  open();
  await settle();
  expect((await Promise.all(jobs.map(load))).every(({ state }) => state === "completed")).toBe(true);
  expect(wire.sent("ck/batch")).toHaveLength(1);
  expect(wire.sent("/ack")).toHaveLength(10);
  expect(client.counters().lost).toBe(0);
  await client.enqueueMany(definition, [1, 2, 3]);
  await settle();
  expect([wire.sent("ck/batch").length, wire.sent("/ack").length]).toEqual([1, 13]);
  await advance("60s");
  wire.answer = () => undefined;
  await client.enqueueMany(definition, [1, 2, 3]);
  await settle();
  expect(wire.sent("ck/batch")).toHaveLength(2);
});

it.each(["unanswered", "unsent"] as const)(
  "repeats many whose request was %s, and loses none",
  async (fate) => {
    const { open, advance, wire, jobs, load, client } = await tenAtOnce();
    let failures = 0;
    wire.fate = ({ path }) => (path.endsWith("ck/batch") && failures++ < 2 ? fate : "served");
    open();
    await advance("5s");
    expect(wire.sent("ck/batch")).toHaveLength(3);
    expect((await Promise.all(jobs.map(load))).map(({ state, attempt }) => [state, attempt])).toEqual(
      jobs.map(() => ["completed", 1]),
    );
    expect(client.counters().lost).toBe(0);
  },
);

describe("3.8 reports in a batch", () => {
  it("only the refused reports of a batch count as lost", async () => {
    const { open, settle, wire, jobs, load, client, engine, told } = await tenAtOnce();
    // Between two beats the worker does not hear of it.
    for (const { id } of jobs.slice(4, 6)) await engine.cancel(id);
    open();
    await settle();
    expect(jobsOf(wire.sent("ck/batch")[0])).toHaveLength(9);
    const states = (await Promise.all(jobs.map(load))).map(({ state }) => state);
    expect(states.filter((state) => state === "cancelled")).toHaveLength(2);
    expect(states.filter((state) => state === "completed")).toHaveLength(8);
    expect([client.counters().lost, told.map(({ name }) => name)]).toEqual([2, ["job.lost", "job.lost"]]);
  });
});

it("a report with a temporary error is sent again in its own request", async () => {
  const { open, advance, wire, jobs, load, client } = await tenAtOnce();
  wire.answer = ({ path, body }) => {
    if (!path.endsWith("ck/batch")) return undefined;
    const results = (body.jobs as { job_id: string }[]).map(({ job_id }) => ({
      job_id,
      status: 503,
      error: { code: "backend_error" },
    }));
    return new Response(JSON.stringify({ results }), { status: 200 });
  };
  open();
  await advance("5s");
  expect((await Promise.all(jobs.map(load))).every(({ state }) => state === "completed")).toBe(true);
  expect([wire.sent("/ack").length, client.counters().lost]).toEqual([10, 0]);
});

it.each([
  ["fewer results", () => ({ results: [{ status: 200 }] })],
  ["results without a status", () => ({ results: Array.from({ length: 9 }, () => ({})) })],
  ["no results", () => ({})],
])("does not trust a reply with %s", async (_name, body) => {
  const { open, advance, wire, jobs, load, client } = await tenAtOnce();
  wire.answer = ({ path }) =>
    path.endsWith("ck/batch") ? new Response(JSON.stringify(body()), { status: 200 }) : undefined;
  open();
  await advance("5s");
  expect((await Promise.all(jobs.map(load))).every(({ state }) => state === "completed")).toBe(true);
  expect(client.counters().lost).toBe(0);
});

it("sends large results by themselves", async () => {
  const { open, settle, wire, jobs, load } = await tenAtOnce(() => "x".repeat(300_000));
  open();
  // The server yields to the real event loop while it reads a large body.
  const areCompleted = async () => {
    await settle();
    return (await Promise.all(jobs.map(load))).every(({ state }) => state === "completed");
  };
  await expect.poll(areCompleted).toBe(true);
  // Two of them are more than may travel together.
  expect([wire.sent("ck/batch").length, wire.sent("/ack").length]).toEqual([0, 10]);
});

const FAILURES = [500, 502, 503, 429] as const;

/** What a bad line, a proxy and an older server between others do to reports. */
function trouble(random: Random, call: Call): Response | undefined {
  if (!isReport(call) || random() > 0.2) return undefined;
  const isMany = call.path.endsWith("/batch");
  const status = isMany && random() < 0.4 ? pickOne(random, [404, 405, 413]) : pickOne(random, FAILURES);
  return new Response('{"error":{"code":"trouble"}}', { status });
}

function pickOne<Value>(random: Random, values: readonly Value[]): Value {
  return values[randomInt(random, values.length)] as Value;
}

it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])(
  "no report is lost on a bad connection (seed %i)",
  async (seed) => {
    const random = seededRandom(seed);
    const { client, work, wire, load, engine, advance, sleep } = await openClientStage({ seed });
    wire.answer = (call) => trouble(random, call);
    wire.fate = (call) => {
      const roll = isReport(call) ? random() : 1;
      return roll < 0.15 ? "unsent" : roll < 0.35 ? "unanswered" : "served";
    };
    let ran = 0;
    const { definition, processors } = jobWith(async ({ payload }) => {
      ran += 1;
      await sleep(random() * 60);
      return payload;
    });
    const jobs = await client.enqueueMany(
      definition,
      Array.from({ length: 150 }, (_, index) => index),
    );
    wire.latency = randomInt(random, 40);
    const worker = work(processors, { queues: { default: { concurrency: 30 } } });
    await advance("5m");
    const rows = await Promise.all(jobs.map(load));
    expect(rows.map(({ state, attempt, result }) => [state, attempt, result])).toEqual(
      jobs.map((_, index) => ["completed", 1, String(index)]),
    );
    expect([ran, engine.counters().completed, client.counters().lost]).toEqual([150, 150, 0]);
    expect(worker.status().unreported).toBe(0);
    expect(wire.sent("ck/batch").length).toBeGreaterThan(0);
  },
);
