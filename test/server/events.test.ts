import { describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { openStage, type Stage } from "./stage.ts";

/** What happened, read by cursor. */

type Event = { type: string; subject: string; time: string; data: Record<string, unknown> };

/** Runs one job through a failure, a retry and its completion. */
async function oneLife(stage: Stage, queue: string): Promise<string> {
  const { id } = await stage.enqueue({ queue, retry: { initial_interval: "PT1S", jitter: false } });
  await stage.fetch({ queues: [queue] });
  await stage.post("/workers/nack", { job_id: id, error: { code: "oops", message: "no" } });
  await stage.advance("1s");
  await stage.fetch({ queues: [queue] });
  await stage.advance("250ms");
  await stage.post("/workers/ack", { job_id: id });
  await stage.advance("200ms");
  return id;
}

const LIFE = ["job.enqueued", "job.started", "job.failed", "job.retrying", "job.started", "job.completed"];

describe("events", () => {
  it("events of a job come in order, each after its commit", async () => {
    await using stage = await openStage();
    const id = await oneLife(stage, "a");
    const { body } = await stage.get("/events");
    expect(body.events.map(({ type }: Event) => type)).toEqual(LIFE);
    expect(body.events.every(({ subject }: Event) => subject === id)).toBe(true);
    expect(body.events.at(-1).data).toMatchObject({
      job_type: "test.job",
      queue: "a",
      attempt: 2,
      duration_ms: 250,
    });
    expect(body.events[3].data).toMatchObject({ error: { code: "oops" }, next_retry_at: expect.any(String) });
  });

  it("each event has the fields of the specification", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ queue: "a", retry: { max_attempts: 2, jitter: false } });
    await stage.fetch({ queues: ["a"], worker_id: "w" });
    await stage.call("PUT", `/jobs/${id}/progress`, { progress: 0.5, message: "half", data: [1] });
    await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
    await stage.enqueue({ queue: "a", enqueue_ttl: 1 });
    await stage.advance("1s");
    await stage.advance("200ms");
    const { body } = await stage.get("/events");
    const dataOf = (type: string) => body.events.find((event: Event) => event.type === type)?.data;
    expect(dataOf("job.started")).toMatchObject({ worker_id: "w", attempt: 1 });
    expect(dataOf("job.progress")).toMatchObject({ progress: 0.5, message: "half", data: [1] });
    expect(dataOf("job.retrying")).toMatchObject({ max_attempts: 2, next_retry_at: expect.any(String) });
    const { created_at, expired_at, ttl_ms } = dataOf("job.expired");
    expect(ttl_ms).toBe(1_000);
    expect(Date.parse(expired_at) - Date.parse(created_at)).toBeGreaterThanOrEqual(1_000);
  });

  it("pages miss no event and repeat none", async () => {
    await using stage = await openStage();
    for (const queue of ["a", "b", "a"]) await oneLife(stage, queue);
    const read: string[] = [];
    let after = "0";
    for (;;) {
      const { body } = await stage.get(`/events?after=${encodeURIComponent(after)}&limit=4`);
      read.push(...body.events.map(({ type }: Event) => type));
      after = body.cursor;
      if (!body.has_more) break;
    }
    expect(read).toEqual([...LIFE, ...LIFE, ...LIFE]);
    expect((await stage.get(`/events?after=${encodeURIComponent(after)}`)).body.events).toEqual([]);
    await oneLife(stage, "c");
    const { body } = await stage.get(`/events?after=${encodeURIComponent(after)}&limit=100`);
    expect(body.events.map(({ type }: Event) => type)).toEqual(LIFE);
  });

  it("a read without a cursor gives the newest events and the cursor after them", async () => {
    await using stage = await openStage();
    await oneLife(stage, "a");
    const first = await stage.get("/events?limit=2");
    expect(first.body.events.map(({ type }: Event) => type)).toEqual(LIFE.slice(-2));
    const id = await oneLife(stage, "b");
    const next = await stage.get(`/events?after=${encodeURIComponent(first.body.cursor)}`);
    expect(next.body.events.map(({ subject }: Event) => subject)).toEqual(LIFE.map(() => id));
  });

  it("events are filtered by type, queue and job", async () => {
    await using stage = await openStage();
    const id = await oneLife(stage, "a");
    await oneLife(stage, "b");
    const types = async (query: string) =>
      (await stage.get(`/events?${query}`)).body.events.map(({ type }: Event) => type);
    expect(await types("types=job.failed,job.completed&queues=a")).toEqual(["job.failed", "job.completed"]);
    expect(await types(`job_id=${id}&types=job.started`)).toEqual(["job.started", "job.started"]);
    expect(await types("queues=nobody")).toEqual([]);
  });

  it("events name which of the five timeouts fired", async () => {
    await using stage = await openStage();
    const cases = {
      "job.timeout": { timeout_ms: 1_000 },
      "job.total_timeout": { total_timeout_ms: 1_000 },
      "job.stalled": { heartbeat_timeout_ms: 1_000 },
      "job.visibility_timeout": { visibility_timeout_ms: 1_000 },
    };
    for (const options of Object.values(cases)) await stage.enqueue(options);
    await stage.post("/workers/fetch", { queues: ["default"], count: 10 });
    await stage.enqueue({ enqueue_ttl: 1 });
    await stage.advance("1100ms");
    const { body } = await stage.get("/events");
    const told = body.events.map(({ type }: Event) => type);
    for (const type of [...Object.keys(cases), "job.ttl_expired", "job.expired"])
      expect(told).toContain(type);
    const kinds = body.events.flatMap(({ type, data }: Event) =>
      data.timeout_kind && type !== "job.failed" && type !== "job.retrying" && type !== "job.discarded"
        ? [[type, data.timeout_kind, data.limit_seconds]]
        : [],
    );
    expect(kinds.sort()).toEqual([
      ["job.expired", "enqueue_ttl", 1],
      ["job.stalled", "stalled", 1],
      ["job.timeout", "execution", 1],
      ["job.total_timeout", "total", 1],
      ["job.ttl_expired", "enqueue_ttl", 1],
    ]);
  });

  it("an invalid cursor is refused", async () => {
    await using stage = await openStage();
    for (const after of ["x", "1;drop", "-", "1.2.3.4", "-1", "~0"]) {
      const { status, body } = await stage.get(`/events?after=${encodeURIComponent(after)}`);
      expect([status, body.error.code]).toEqual([400, "invalid_request"]);
    }
  });
});

describe("the audit", () => {
  it("names the key that cancelled, activated, extended, retried or deleted a job", async () => {
    const { key, hash } = createKey();
    await using stage = await openStage({}, { keys: [{ name: "mia", role: "admin", hash }] });
    const headers = { Authorization: `Bearer ${key}` };
    const call = async (method: string, path: string, body?: unknown) => {
      const answer = await stage.call(method, path, body, headers);
      expect([200, 201], `${method} ${path}`).toContain(answer.status);
      return answer.body;
    };
    const add = async (options: object) =>
      (await call("POST", "/jobs", { type: "test.job", args: [], options })).job.id as string;
    const [first, second] = [
      await add({ pending: true }),
      await add({ queue: "b", retry: { max_attempts: 1, on_exhaustion: "dead_letter" } }),
    ];
    await call("POST", `/jobs/${first}/activate`, {});
    await call("PATCH", `/jobs/${first}`, { timeout_ms: 5_000 });
    await call("DELETE", `/jobs/${first}`);
    const error = { message: "no", code: "x" };
    for (const round of [1, 2]) {
      await call("POST", "/workers/fetch", { queues: ["b"], worker_id: "w" });
      await call("POST", "/workers/nack", { job_id: second, worker_id: "w", error });
      if (round === 1) await call("POST", `/dead-letter/${second}/retry`, {});
    }
    await call("DELETE", `/dead-letter/${second}`);
    const { entries } = await stage.engine.audit.read();
    const done = entries.map(({ actor, action, job }) => [actor, action, job]).reverse();
    expect(done).toEqual([
      ["mia", "job.activate", first],
      ["mia", "job.extend", first],
      ["mia", "job.cancel", first],
      ["mia", "job.retry", second],
      ["mia", "job.delete", second],
    ]);
    expect(JSON.stringify(entries)).not.toContain(key);
  });
});
