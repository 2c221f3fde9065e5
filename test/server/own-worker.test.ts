import { describe, expect, it } from "vitest";
import { rowOf } from "../../src/testing/read-store.ts";
import { openStage } from "./stage.ts";

/** What our own remote worker asks of the server beyond the specification. */

describe("verdicts of a worker that judges for itself (3.6, 3.7)", () => {
  const options = { timeout_ms: 2_000, grace_period_ms: 1_000, heartbeat_timeout: "none" };

  it("a verdict at the hard deadline is the one that was due, with where the handler hung", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue(options);
    const { fence } = await stage.fetch({ soft_timeout: true });
    await stage.advance("3s");
    const error = { message: "hung", stack: "at loop (work.ts:1)" };
    const { status, body } = await stage.post("/workers/nack", { job_id: id, fence, forced: true, error });
    expect([status, body.state]).toEqual([200, "retryable"]);
    expect(body.job.error).toMatchObject({
      type: "timeout",
      forced: true,
      backtrace: ["at loop (work.ts:1)"],
    });
  });

  it("a moment before the deadline it is the timeout that was signalled", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue(options);
    const { fence } = await stage.fetch({ soft_timeout: true });
    await stage.advance("2999ms");
    const error = { message: "hung" };
    const { body } = await stage.post("/workers/nack", { job_id: id, fence, forced: true, error });
    expect([body.job.error.type, body.job.error.cause.message]).toEqual(["timeout", "hung"]);
  });

  it("without the fence a late failure is late, whatever it says of itself", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue(options);
    await stage.fetch({ soft_timeout: true });
    await stage.advance("3s");
    expect((await stage.post("/workers/nack", { job_id: id, forced: true, error: {} })).status).toBe(409);
  });

  it("a worker that saw its handler fall silent says so, though its own beats went on", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const { fence, beats } = await stage.fetch({ soft_timeout: true });
    expect(beats).toBe("worker");
    await stage.advance("30s");
    await stage.post("/workers/beat", { worker_id: "w-1", active_jobs: [{ id, fence }] });
    await stage.advance("30s");
    const error = { message: "silent" };
    const { body } = await stage.post("/workers/nack", { job_id: id, fence, stalled: true, error });
    expect([body.state, body.job.error.type]).toEqual(["retryable", "stalled"]);
  });
});

describe("beats", () => {
  it("a beat reports a watched job without moving its silence", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ heartbeat_timeout: 5 });
    const { fence, beats } = await stage.fetch();
    expect(beats).toBe("handler");
    await stage.advance("4s");
    const { body } = await stage.post("/workers/beat", { worker_id: "w-1", watched_jobs: [{ id, fence }] });
    expect([body.jobs_extended, body.jobs]).toMatchObject([0, [{ id, fence, directive: "continue" }]]);
    expect(body.jobs[0].deadlines.silence_ms).toBe(5_000);
    await stage.advance("1s");
    expect((await stage.job(id)).error.type).toBe("stalled");
  });

  it("two attempts of one job are told apart by their fences", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({
      timeout_ms: 1_000,
      retry: { initial_interval: "PT1S", jitter: false },
    });
    const first = await stage.fetch();
    await stage.advance("2s");
    const second = await stage.fetch();
    const active_jobs = [{ id, fence: first.fence }];
    const watched_jobs = [
      { id, fence: second.fence },
      { id, fence: second.fence },
    ];
    const { body } = await stage.post("/workers/beat", { worker_id: "w-1", active_jobs, watched_jobs });
    expect(body.jobs.map(({ fence, directive }: never) => [fence, directive])).toEqual([
      [first.fence, "lost"],
      [second.fence, "continue"],
    ]);
  });
});

describe("fetch (2)", () => {
  it("waits for a job, and gets it as soon as it is there", async () => {
    await using stage = await openStage();
    const waiting = stage.post("/workers/fetch", { queues: ["default"], worker_id: "w-1", wait_ms: 2_000 });
    await stage.advance("500ms");
    const { id } = await stage.enqueue();
    const { body } = await waiting;
    expect(body.jobs[0].id).toBe(id);
    expect(Date.parse(body.jobs[0].started_at) - Date.parse(body.jobs[0].created_at)).toBeLessThan(10);
  });

  it("waits no longer than it said, and not at all once the server closes", async () => {
    await using stage = await openStage();
    const waiting = stage.post("/workers/fetch", { queues: ["default"], wait_ms: 2_000 });
    await stage.advance("2s");
    expect((await waiting).body.jobs).toEqual([]);
    const cut = stage.post("/workers/fetch", { queues: ["default"], wait_ms: 2_000 });
    await stage.advance("1ms");
    const closing = stage.server.close();
    await stage.advance("1ms");
    expect((await cut).body.jobs).toEqual([]);
    await closing;
  });

  it("ends at once when its worker says that it stops", async () => {
    await using stage = await openStage();
    const waiting = stage.post("/workers/fetch", { queues: ["default"], worker_id: "w-1", wait_ms: 2_000 });
    await stage.advance("100ms");
    const before = stage.test.now();
    await stage.post("/workers/beat", { worker_id: "w-1", state: "drain" });
    expect((await waiting).body.jobs).toEqual([]);
    expect(stage.test.now()).toBe(before);
  });

  it("asked again under its own id it gets the same jobs, except those that were settled", async () => {
    await using stage = await openStage();
    const ids = [(await stage.enqueue()).id, (await stage.enqueue()).id];
    const again = async () => {
      const request = { queues: ["default"], count: 5, worker_id: "w-1", fetch_id: "f-1" };
      const { body } = await stage.post("/workers/fetch", request);
      return body.jobs.map(({ id, attempt }: never) => [id, attempt]);
    };
    expect(await again()).toEqual(ids.map((id) => [id, 1]));
    await stage.post("/workers/ack", { job_id: ids[0] });
    await stage.enqueue();
    expect(await again()).toEqual([[ids[1], 1]]);
  });

  it("the worker's definition gives what the producer did not say", async () => {
    await using stage = await openStage();
    await stage.enqueue({ timeout_ms: 5_000 });
    const definition = { timeout_ms: 1_000, heartbeat_timeout_ms: 9_000, retry: { max_attempts: 7 } };
    const job = await stage.fetch({ definitions: { "test.job": definition } });
    expect(job).toMatchObject({
      timeout_ms: 5_000,
      heartbeat_timeout_ms: 9_000,
      max_attempts: 7,
      beats: "handler",
    });
    const bad = await stage.post("/workers/fetch", { queues: ["a"], definitions: { x: { timeout_ms: 0 } } });
    expect(bad.status).toBe(400);
  });
});

describe("enqueue (4.7, 9)", () => {
  it("a running job hands on what is left of its total", async () => {
    await using stage = await openStage();
    const parent = await stage.enqueue({ total_timeout: 60 });
    await stage.fetch();
    await stage.advance("20s");
    const child = await stage.enqueue({}, { parent_id: parent.id });
    const free = await stage.enqueue({}, { parent_id: "unknown" });
    await stage.advance("40s");
    const { state, error } = await stage.job(child.id);
    expect([state, error.message]).toEqual([
      "discarded",
      `Timed out (deadline exceeded, inherited from job ${parent.id})`,
    ]);
    expect((await stage.job(free.id)).state).toBe("available");
  });

  it("takes exact delays and a retention", async () => {
    await using stage = await openStage();
    const retry = { backoff_strategy: "delays", delays_ms: [100, 7_000], max_attempts: 5 };
    const { id } = await stage.enqueue({ retry, retention_ms: { discarded: 90_000 } });
    for (const delay of [100, 7_000, 7_000]) {
      await stage.fetch();
      const { body } = await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
      expect(body.retry_delay_ms).toBe(delay);
      await stage.advance("10s");
    }
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: id, error: { code: "FAIL", message: "no" } });
    const row = await rowOf(stage.engine.store, id);
    expect((row?.pruneAt ?? 0) - (row?.finishedAt ?? 0)).toBe(90_000);
  });

  it("a finished job is kept for a minute at least, so that it can be looked at", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ retention_ms: 0 });
    await stage.fetch();
    await stage.post("/workers/ack", { job_id: id, result: { ok: 1 } });
    expect(await stage.job(id)).toMatchObject({ state: "completed", result: { ok: 1 } });
  });

  it("a look at a job may wait for its end", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch();
    const waiting = stage.get(`/jobs/${id}?wait_ms=2000`);
    await stage.advance("100ms");
    await stage.post("/workers/ack", { job_id: id, result: 5 });
    await stage.advance("1ms");
    expect((await waiting).body.job).toMatchObject({ state: "completed", result: 5 });
  });

  it("a job given back without an error keeps none", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: id, requeue: true, error: null });
    expect((await stage.job(id)).errors).toBeUndefined();
  });
});
