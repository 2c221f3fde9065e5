import { describe, expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

/** SEMANTICS 1.4, 3 and 4 over HTTP: what the server does about workers that it cannot see. */

async function ended(stage: Stage, id: string) {
  const { state, error } = await stage.job(id);
  return [state, error?.type];
}

describe("3.8 whose report counts", () => {
  it("the fence decides where it is given", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const { fence } = await stage.fetch();
    const wrong = await stage.post("/workers/ack", { job_id: id, fence: fence - 1, worker_id: "w-1" });
    expect([wrong.status, wrong.body.error.code]).toEqual([409, "conflict"]);
    const right = await stage.post("/workers/ack", { job_id: id, fence, worker_id: "another" });
    expect([right.status, right.body.state]).toEqual([200, "completed"]);
  });

  it("without a fence the worker's name decides, and without both any report counts", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch();
    const other = await stage.post("/workers/ack", { job_id: id, worker_id: "w-2" });
    expect(other.status).toBe(409);
    expect((await stage.post("/workers/ack", { job_id: id })).body.state).toBe("completed");
  });

  it("a report of the first holder changes nothing once a second one has the job", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({
      timeout_ms: 1_000,
      retry: { initial_interval: "PT1S", jitter: false },
    });
    const first = await stage.fetch();
    await stage.advance("2s");
    const second = await stage.fetch({ worker_id: "w-2" });
    expect([second.id, second.attempt]).toEqual([id, 2]);
    for (const path of ["/workers/ack", "/workers/nack"]) {
      const late = await stage.post(path, { job_id: id, fence: first.fence, error: { message: "no" } });
      expect(late.status).toBe(409);
    }
    const progress = await stage.call("PUT", `/jobs/${id}/progress`, { progress: 0.5, fence: first.fence });
    const checkpoint = await stage.call("PUT", `/jobs/${id}/checkpoint`, { state: 1, fence: first.fence });
    const logs = await stage.post(`/jobs/${id}/logs`, { lines: [{ message: "hi" }], fence: first.fence });
    expect([progress.status, checkpoint.status, logs.status]).toEqual([409, 409, 409]);
    expect((await stage.job(id)).attempt).toBe(2);
    expect((await stage.post("/workers/ack", { job_id: id, fence: second.fence })).status).toBe(200);
  });

  it("a report whose reply was lost is answered again, and counted once", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ retry: { initial_interval: "PT1S", jitter: false } });
    const first = await stage.fetch();
    const nack = { job_id: id, fence: first.fence, error: { message: "no" } };
    await stage.post("/workers/nack", nack);
    const again = await stage.post("/workers/nack", nack);
    expect([again.status, again.body.state, again.body.job.errors.length]).toEqual([200, "retryable", 1]);
    await stage.advance("1s");
    const { fence } = await stage.fetch();
    expect((await stage.post("/workers/nack", nack)).status).toBe(409);
    const acks = [await stage.post("/workers/ack", { job_id: id, fence, result: 1 })];
    acks.push(await stage.post("/workers/ack", { job_id: id, fence, result: 1 }));
    expect(acks.map(({ status, body }) => [status, body.state])).toEqual([
      [200, "completed"],
      [200, "completed"],
    ]);
    expect((await stage.post("/workers/nack", { job_id: id, fence, error: {} })).status).toBe(409);
    expect(stage.engine.counters().completed).toBe(1);
  });

  it("a store that does not answer is waited for, and a reporting worker is asked to come back", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const { fence } = await stage.fetch();
    const { store } = stage.engine;
    const commit = store.commit.bind(store);
    store.commit = () => Promise.reject(new Error("down"));
    const waiting = stage.post("/workers/ack", { job_id: id, fence });
    await stage.advance("10s");
    const { status, body } = await waiting;
    expect([status, body.error.retryable]).toEqual([503, true]);
    store.commit = commit;
    await stage.advance("3s");
    expect((await stage.post("/workers/ack", { job_id: id, fence })).body.state).toBe("completed");
  });

  it("a job that is not there is 404, and one that waits is 409", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    expect((await stage.post("/workers/ack", { job_id: id })).status).toBe(409);
    expect((await stage.post("/workers/ack", { job_id: "nonsense" })).status).toBe(404);
    const unknown = "01890000-0000-7000-8000-000000000009";
    expect((await stage.post("/workers/nack", { job_id: unknown, error: {} })).status).toBe(404);
  });
});

describe("1.4 the server takes jobs back by itself (1, 3.6, 4.3)", () => {
  it("a foreign worker's job at the timeout itself, where nobody named a grace", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout_ms: 2_000 });
    await stage.fetch();
    await stage.advance("1999ms");
    expect((await stage.job(id)).state).toBe("active");
    await stage.advance("1ms");
    const job = await stage.job(id);
    expect([job.state, job.error.type, job.error.timeout_kind]).toEqual([
      "retryable",
      "timeout",
      "execution",
    ]);
    expect([job.error.limit_seconds, job.error.message]).toEqual([2, "Timed out after 2s"]);
  });

  it("the server takes a job back at timeout plus grace where a grace is named", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout: 2, grace_period: 3 });
    await stage.fetch();
    await stage.advance("4999ms");
    expect((await stage.job(id)).state).toBe("active");
    await stage.advance("1ms");
    expect(await ended(stage, id)).toEqual(["retryable", "timeout"]);
  });

  it("a worker that hears gets 30 s of grace, and a second more from the sweep", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout_ms: 2_000, heartbeat_timeout: "none" });
    const { deadlines } = await stage.fetch({ soft_timeout: true });
    const [soft, hard] = [Date.parse(deadlines.soft_at), Date.parse(deadlines.hard_at)];
    expect([soft - Date.parse(deadlines.server_time), hard - soft]).toEqual([2_000, 30_000]);
    await stage.advance("32999ms");
    expect((await stage.job(id)).state).toBe("active");
    await stage.advance("1ms");
    expect(await ended(stage, id)).toEqual(["retryable", "timeout"]);
  });

  it("a worker that is not ours and gives no sign of life for 90 s has stalled", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch();
    await stage.advance("89999ms");
    expect((await stage.job(id)).state).toBe("active");
    await stage.advance("1ms");
    const { state, error } = await stage.job(id);
    expect([state, error.type, error.timeout_kind]).toEqual(["retryable", "stalled", "stalled"]);
  });

  it("beats that name the job, and progress, move only the silence and never the attempt", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ heartbeat_timeout: 5, timeout: 12 });
    await stage.fetch();
    await stage.advance("4s");
    const beat = await stage.post("/workers/heartbeat", { worker_id: "w-1", active_jobs: [id] });
    expect([beat.body.jobs_extended, beat.body.jobs[0].directive]).toEqual([1, "continue"]);
    await stage.advance("4s");
    await stage.call("PUT", `/jobs/${id}/progress`, { progress: 0.5 });
    await stage.advance("3999ms");
    expect((await stage.job(id)).state).toBe("active");
    await stage.advance("1ms");
    expect(await ended(stage, id)).toEqual(["retryable", "timeout"]);
  });

  it("a beat that does not name the job does not keep it", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ heartbeat_timeout: 5 });
    await stage.fetch();
    await stage.advance("4s");
    await stage.post("/workers/heartbeat", { worker_id: "w-1", active_jobs: 1 });
    await stage.advance("1s");
    expect(await ended(stage, id)).toEqual(["retryable", "stalled"]);
  });

  it("a named visibility timeout makes the job available at once, spends the attempt and ends at the limit", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ visibility_timeout_ms: 3_000, retry: { max_attempts: 2 } });
    await stage.fetch();
    await stage.advance("3s");
    const job = await stage.job(id);
    expect([job.state, job.attempt, job.error.type]).toEqual(["available", 1, "visibility_timeout"]);
    expect((await stage.fetch()).attempt).toBe(2);
    await stage.advance("3s");
    expect(await ended(stage, id)).toEqual(["discarded", "visibility_timeout"]);
  });

  it("a job whose visibility timeout is too short to hand it out is released once per fetch, not in a loop", async () => {
    await using stage = await openStage();
    await stage.enqueue({ visibility_timeout_ms: 1 });
    const other = await stage.enqueue({ priority: -1 });
    const released: number[] = [];
    stage.engine.on("job.released", ({ at }) => released.push(at));
    expect(await stage.fetch()).toBeUndefined();
    expect(released).toHaveLength(1);
    // With room for two, the job beside it is handed out.
    const { body } = await stage.post("/workers/fetch", { queues: ["default"], count: 2, worker_id: "w-1" });
    expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual([other.id]);
    // A fetch that waits rests after each release, although the release itself says that the queue has a job.
    const waiting = stage.post("/workers/fetch", { queues: ["default"], worker_id: "w-1", wait_ms: 1_000 });
    await stage.advance("1s");
    expect((await waiting).body.jobs).toEqual([]);
    expect(released.length).toBeLessThan(15);
  });

  it("the fetch may name the visibility timeout, for longer than the built-in heartbeat", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch({ visibility_timeout_ms: 300_000 });
    await stage.advance("299999ms");
    expect((await stage.job(id)).state).toBe("active");
    await stage.advance("1ms");
    expect(await ended(stage, id)).toEqual(["available", "visibility_timeout"]);
  });

  it("the total ends a running job, a job in backoff, and one that could not be retried in time", async () => {
    await using stage = await openStage();
    const running = await stage.enqueue({ total_timeout: 5, timeout: "none", heartbeat_timeout: "none" });
    await stage.fetch();
    await stage.advance("5s");
    expect(await ended(stage, running.id)).toEqual(["discarded", "total_timeout"]);

    const retry = { initial_interval: "PT4S", jitter: false };
    const waiting = await stage.enqueue({ total_timeout: 5, retry_fit: "any", retry });
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: waiting.id, error: { message: "no" } });
    expect((await stage.job(waiting.id)).state).toBe("retryable");
    await stage.advance("5s");
    expect(await ended(stage, waiting.id)).toEqual(["discarded", "total_timeout"]);

    const hopeless = await stage.enqueue({ total_timeout: 5, timeout: 4, retry });
    await stage.fetch();
    const { body } = await stage.post("/workers/nack", { job_id: hopeless.id, error: { message: "no" } });
    expect([body.state, body.job.error.type, body.job.error.predicted]).toEqual([
      "discarded",
      "total_timeout",
      true,
    ]);
    expect(body.job.errors.map(({ type }: { type: string }) => type)).toEqual([
      "handler_error",
      "total_timeout",
    ]);
  });

  it("a job that was not fetched in time expires, by enqueue_ttl and by expires_at", async () => {
    await using stage = await openStage();
    const first = await stage.enqueue({ enqueue_ttl: 2 });
    const second = await stage.enqueue({ expires_at: "+PT2S" });
    await stage.advance("2s");
    for (const { id } of [first, second]) {
      const job = await stage.job(id);
      expect([job.state, job.error.type, job.completed_at]).toEqual([
        "discarded",
        "enqueue_ttl_expired",
        undefined,
      ]);
    }
    expect(await stage.fetch()).toBeUndefined();
  });

  it("mode discard ends the job at its attempt timeout", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout_ms: 1_000, timeout_mode: "discard" });
    await stage.fetch();
    await stage.advance("1s");
    const job = await stage.job(id);
    expect([job.state, job.error.type, job.dead_letter]).toEqual(["discarded", "timeout", undefined]);
  });
});

describe("3.4 reports around the deadlines (3.2, 3.5, 5.1, 5.3)", () => {
  const options = { timeout_ms: 2_000, grace_period_ms: 3_000 };

  it("a success in the grace counts as late", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue(options);
    await stage.fetch({ soft_timeout: true });
    await stage.advance("3s");
    expect((await stage.post("/workers/ack", { job_id: id, result: 7 })).body.state).toBe("completed");
    await stage.advance("1s");
    const { body } = await stage.get(`/events?types=job.completed&job_id=${id}`);
    expect(body.events[0].data.late).toBe(true);
  });

  it("a failure after the soft signal is that timeout, unless a worker that hears says that it came before", async () => {
    await using stage = await openStage();
    const error = { code: "oops", message: "no" };
    for (const [signalled, type] of [
      [undefined, "timeout"],
      [true, "timeout"],
      [false, "oops"],
    ] as const) {
      const { id } = await stage.enqueue(options);
      await stage.fetch({ soft_timeout: true });
      await stage.advance("2s");
      const { body } = await stage.post("/workers/nack", { job_id: id, error, signalled });
      expect([body.state, body.job.error.type]).toEqual(["retryable", type]);
      await stage.call("DELETE", `/jobs/${id}`);
    }
  });

  it("a success at the hard deadline is refused, even where no sweep has come by yet", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout_ms: 2_000 });
    const { fence } = await stage.fetch();
    // Nothing of the server runs meanwhile, so the report is the first to find the deadline passed.
    stage.test.system.pause(2_000);
    const late = await stage.post("/workers/ack", { job_id: id, fence });
    expect(late.status).toBe(409);
    expect(await ended(stage, id)).toEqual(["retryable", "timeout"]);
  });

  it("a beat in the grace brings the soft signal with its deadline, and the word that the job is lost after it", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue(options);
    const { fence } = await stage.fetch({ soft_timeout: true });
    const beat = async () => {
      const { body } = await stage.post("/workers/heartbeat", {
        worker_id: "w-1",
        active_jobs: [{ id, fence }],
      });
      return body.jobs[0];
    };
    await stage.advance("2s");
    const told = await beat();
    expect([told.directive, told.kind]).toEqual(["soft_timeout", "execution"]);
    expect(Date.parse(told.deadline) - Date.parse(told.deadlines.server_time)).toBe(3_000);
    await stage.advance("4s");
    expect(await beat()).toEqual({ id, fence, directive: "lost" });
  });

  it("the reply to a beat reports a cancel, and nothing the worker reports afterwards counts", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const { fence } = await stage.fetch();
    expect((await stage.call("DELETE", `/jobs/${id}`)).body.job.state).toBe("cancelled");
    const { body } = await stage.post("/workers/beat", { worker_id: "w-1", active_job_ids: [id] });
    expect(body.jobs).toEqual([{ id, directive: "cancel" }]);
    expect((await stage.post("/workers/ack", { job_id: id, fence })).status).toBe(409);
  });

  it("an extension holds for the attempt that runs, and the reply to the next beat reports it", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout_ms: 2_000 });
    const { fence } = await stage.fetch();
    expect((await stage.call("PATCH", `/jobs/${id}`, { timeout_ms: 10_000 })).status).toBe(200);
    const { body } = await stage.post("/workers/beat", { worker_id: "w-1", active_jobs: [{ id, fence }] });
    const { soft_at, server_time } = body.jobs[0].deadlines;
    expect(Date.parse(soft_at) - Date.parse(server_time)).toBe(10_000);
    await stage.advance("9s");
    expect((await stage.post("/workers/ack", { job_id: id, fence })).status).toBe(200);
  });
});

describe("4.4 giving a job back", () => {
  it("requeue spends no attempt, at once or after a delay", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch();
    const back = await stage.post("/workers/nack", { job_id: id, requeue: true, error: { message: "bye" } });
    expect([back.body.state, back.body.attempt]).toEqual(["available", 0]);
    expect((await stage.fetch()).attempt).toBe(1);
    const later = await stage.post("/workers/nack", { job_id: id, requeue: true, delay_ms: 5_000 });
    expect(later.body.state).toBe("scheduled");
    await stage.advance("5s");
    expect((await stage.fetch()).attempt).toBe(1);
  });

  it("a snooze is no failure", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.fetch();
    const { body } = await stage.post("/workers/nack", { job_id: id, snooze_until: "+PT1M" });
    expect([body.state, body.attempt, body.job.error]).toEqual(["scheduled", 0, undefined]);
    await stage.advance("60s");
    expect((await stage.fetch()).id).toBe(id);
  });

  it("a handler's code overrides the policy: discard, dead letter, retry and fail", async () => {
    await using stage = await openStage();
    const retry = { max_attempts: 3, non_retryable_errors: ["RETRY"] };
    const states: Record<string, unknown> = {};
    for (const code of ["DISCARD", "DEAD_LETTER", "RETRY", "FAIL", "other"]) {
      const { id } = await stage.enqueue({ retry });
      await stage.fetch();
      const { body } = await stage.post("/workers/nack", { job_id: id, error: { code, message: "no" } });
      states[code] = [body.state, body.job.dead_letter];
    }
    expect(states).toEqual({
      DISCARD: ["discarded", undefined],
      DEAD_LETTER: ["discarded", true],
      RETRY: ["retryable", undefined],
      FAIL: ["discarded", undefined],
      other: ["retryable", undefined],
    });
  });
});

describe("fetch (3.1)", () => {
  it("takes queues left to right, and by priority and age within one", async () => {
    await using stage = await openStage();
    const low = await stage.enqueue({ queue: "b" });
    const high = await stage.enqueue({ queue: "b", priority: 5 });
    const first = await stage.enqueue({ queue: "a" });
    const { body } = await stage.post("/workers/fetch", { queues: ["a", "b"], count: 10, worker_id: "w-1" });
    expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual([first.id, high.id, low.id]);
  });

  it("many at once share claims, and no job goes to two of them", async () => {
    await using stage = await openStage();
    for (let count = 0; count < 16; count++) await stage.enqueue();
    let claims = 0;
    const { jobs } = stage.engine.store;
    const claim = jobs.claim.bind(jobs);
    jobs.claim = (request) => {
      claims += 1;
      return claim(request);
    };
    const fetched = await Promise.all(
      Array.from({ length: 20 }, (_, index) => stage.fetch({ worker_id: `w-${index}` })),
    );
    const ids = fetched.filter((job) => job !== undefined).map(({ id }) => id);
    expect(new Set(ids).size).toBe(16);
    expect(claims).toBeLessThanOrEqual(3);
  });

  it("nothing is handed out past its deadline: a job whose start took longer is given back unspent", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout_ms: 1_000 });
    const { store } = stage.engine;
    const commit = store.commit.bind(store);
    store.commit = async (units, options) => {
      const outcomes = await commit(units, options);
      stage.test.system.pause(2_000);
      store.commit = commit;
      return outcomes;
    };
    expect(await stage.fetch()).toBeUndefined();
    expect((await stage.job(id)).state).not.toBe("active");
  });

  it("gives a worker that drains nothing, and says how it is doing", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    await stage.post("/workers/beat", { worker_id: "w-1", state: "drain", active_jobs: 0 });
    expect(await stage.fetch()).toBeUndefined();
    const health = await stage.get("/workers/w-1/health");
    expect([health.status, health.body.state]).toEqual([503, "drain"]);
    expect((await stage.get("/workers/w-9/health")).status).toBe(404);
    expect(await stage.fetch({ worker_id: "w-2" })).toBeDefined();
  });

  it("hands out nothing once the server closes", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    await stage.server.close();
    expect(await stage.fetch()).toBeUndefined();
    expect((await stage.call("GET", "http://127.0.0.1/ready")).status).toBe(503);
  });
});
