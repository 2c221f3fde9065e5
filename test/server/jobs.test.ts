import { describe, expect, it } from "vitest";
import type { ZodType } from "zod";
import { ROUTES } from "../../src/server/routes/all.ts";
import { openStage } from "./stage.ts";

/** Jobs on the wire: what is taken, what is refused and how, and what comes back. */

const LIMITS = ["timeout", "total_timeout", "enqueue_ttl", "grace_period", "heartbeat_timeout"];

describe("1.1 timeouts on the wire (1.2)", () => {
  it("all five in both spellings and in both places come back in milliseconds, and never as `timeout`", async () => {
    await using stage = await openStage();
    const inSeconds = Object.fromEntries(LIMITS.map((name, index) => [name, 100 - index]));
    const inMs = Object.fromEntries(LIMITS.map((name, index) => [`${name}_ms`, (100 - index) * 1_000]));
    // A total must not be shorter than an attempt, so both are given their own.
    const total = { total_timeout: 200 };
    const totalMs = { total_timeout_ms: 200_000 };
    const expected = { ...inMs, ...totalMs };
    for (const [options, more] of [
      [{ ...inSeconds, ...total }, {}],
      [{ ...inMs, ...totalMs }, {}],
      [{}, { ...inSeconds, ...total }],
      [{}, { ...inMs, ...totalMs }],
    ] as const) {
      const job = await stage.enqueue(options, more);
      expect(job).toMatchObject(expected);
      for (const name of LIMITS) expect(job).not.toHaveProperty(name);
      const fetched = await stage.fetch();
      expect(fetched).toMatchObject(expected);
      expect(fetched).not.toHaveProperty("timeout");
    }
  });

  it("wire seconds are whole numbers, and nothing out of range is taken", async () => {
    await using stage = await openStage();
    for (const name of LIMITS) {
      for (const value of [1.5, -1, "30", "PT30S", true, [], 1e12, ...(name === "grace_period" ? [] : [0])]) {
        for (const field of [name, `${name}_ms`]) {
          const { status, body } = await stage.post("/jobs", {
            type: "a",
            args: [],
            options: { [field]: value },
          });
          expect([field, value, status]).toEqual([field, value, 400]);
          expect(body.error.message).toContain(field);
        }
      }
    }
  });

  it("two spellings that contradict each other are refused; the same twice is fine", async () => {
    await using stage = await openStage();
    const bad = await stage.post("/jobs", {
      type: "a",
      args: [],
      options: { timeout: 5 },
      timeout_ms: 4_000,
    });
    expect([bad.status, bad.body.error.message]).toEqual([
      400,
      "timeout_ms: 4000 contradicts timeout: 5; send one of them",
    ]);
    expect((await stage.enqueue({ timeout: 5, timeout_ms: 5_000 })).timeout_ms).toBe(5_000);
  });

  it("none switches a limit off, and grace may be 0 or unbounded", async () => {
    await using stage = await openStage();
    await stage.enqueue({ timeout: "none", heartbeat_timeout: "none", grace_period: "unbounded" });
    const job = await stage.fetch();
    expect(job.deadlines).toMatchObject({ soft_at: null, hard_at: null, stall_at: null });
    await stage.enqueue({ timeout: 5, grace_period: 0 });
    const { deadlines } = await stage.fetch({ soft_timeout: true });
    expect(deadlines.hard_at).toBe(deadlines.soft_at);
  });

  it("contradictions are refused in the words of the wire", async () => {
    await using stage = await openStage();
    const says = async (options: object) => {
      const { status, body } = await stage.post("/jobs", { type: "a", args: [], options });
      return [status, body.error.message];
    };
    expect(await says({ timeout: 10, total_timeout: 5 })).toEqual([
      400,
      expect.stringMatching(/^total_timeout: .* shorter than timeout/),
    ]);
    expect(await says({ enqueue_ttl: 5, scheduled_at: "+PT1M" })).toEqual([
      400,
      expect.stringMatching(/^enqueue_ttl: .*scheduled_at starts it/),
    ]);
    expect(await says({ expires_at: "2020-01-01T00:00:00Z" })).toEqual([
      400,
      expect.stringMatching(/^expires_at: /),
    ]);
  });
});

describe("enqueue", () => {
  it("gives back args, meta and unknown fields as they came", async () => {
    await using stage = await openStage();
    for (const args of [[], [1], [null], [[]], [{ a: { "b.c": [1, "é", null] } }], [1, 2, 3]]) {
      const meta = { "ojs.codec.key_id": "k", nested: { a: [1] } };
      const job = await stage.enqueue(
        { tags: ["t"], x_opt: 1 },
        { args, meta, ext_agent_x: { y: 1 }, version: 3 },
      );
      const expected = { args, meta, tags: ["t"], x_opt: 1, ext_agent_x: { y: 1 }, version: 3 };
      expect(job).toMatchObject(expected);
      expect(await stage.job(job.id)).toMatchObject(expected);
      expect(await stage.fetch()).toMatchObject(expected);
    }
  });

  it("manages its own fields: what a client writes there is ignored", async () => {
    await using stage = await openStage();
    const job = await stage.enqueue(
      { state: "completed" },
      { attempt: 9, fence: 1, result: 1, created_at: "2000-01-01T00:00:00Z", state: "active" },
    );
    expect(job).toMatchObject({ state: "available", attempt: 0 });
    expect(job.created_at).toMatch(/^2030/);
    expect([job.fence, job.result]).toEqual([undefined, undefined]);
  });

  it("keeps an instant as it was written, and makes one of a relative time", async () => {
    await using stage = await openStage();
    const job = await stage.enqueue({
      expires_at: "2099-12-31T23:59:59Z",
      scheduled_at: "2099-01-01T00:00:00+02:00",
    });
    expect(job).toMatchObject({
      state: "scheduled",
      expires_at: "2099-12-31T23:59:59Z",
      scheduled_at: "2099-01-01T00:00:00+02:00",
    });
    const soon = await stage.enqueue({ delay_until: "+PT2S", expires_at: "+PT10S" });
    expect(Date.parse(soon.scheduled_at) - Date.parse(soon.created_at)).toBe(2_000);
    expect(Date.parse(soon.expires_at) - Date.parse(soon.created_at)).toBe(10_000);
  });

  it("gives rules and limits back as they were sent", async () => {
    await using stage = await openStage();
    const said = { unique: { keys: ["type"] }, rate_limit: { key: "k", concurrency: 2 } };
    const { status, body: made } = await stage.post("/jobs", { type: "a", args: [], options: said });
    expect(status).toBe(201);
    expect(made.job).toMatchObject(said);
  });

  it("a pending job waits to be activated", async () => {
    await using stage = await openStage();
    const { id, state } = await stage.enqueue({ pending: true });
    expect([state, await stage.fetch()]).toEqual(["pending", undefined]);
    expect((await stage.post(`/jobs/${id}/activate`)).body.job.state).toBe("available");
    expect((await stage.post(`/jobs/${id}/activate`)).status).toBe(409);
    expect((await stage.fetch()).id).toBe(id);
  });

  it("a known id is 409, and stops a whole batch", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const again = await stage.post("/jobs", { id, type: "a", args: [] });
    expect([again.status, again.body.error.code]).toEqual([409, "duplicate"]);
    const jobs = [
      { type: "a", args: [], options: { queue: "batch" } },
      { id, type: "a", args: [], options: { queue: "batch" } },
    ];
    expect((await stage.post("/jobs/batch", { jobs })).status).toBe(409);
    expect(await stage.fetch({ queues: ["batch"] })).toBeUndefined();
    const made = await stage.post("/jobs/batch", { jobs: [jobs[0], jobs[0]] });
    expect([made.status, made.body.count, made.body.jobs.length]).toEqual([201, 2, 2]);
  });

  it("refuses with the OJS shape, the field and the request's id, and nothing else", async () => {
    await using stage = await openStage();
    const { status, body, headers } = await stage.call(
      "POST",
      "/jobs",
      { args: [] },
      { "X-Request-ID": "r-1" },
    );
    expect([status, headers.get("x-request-id"), headers.get("ojs-version")]).toEqual([400, "r-1", "1.0"]);
    expect(body.error).toMatchObject({ code: "invalid_request", retryable: false, request_id: "r-1" });
    expect(body.error.message).toMatch(/^type: /);
    expect(JSON.stringify(body)).not.toContain(".ts:");
    const retry = await stage.post("/jobs", {
      type: "a",
      args: [],
      options: { retry: { max_attempts: -1 } },
    });
    expect([retry.status, retry.body.error.type]).toEqual([422, "validation_error"]);
    const bad = await stage.call("POST", "/jobs", "{ nope");
    expect([bad.status, bad.body.error.code]).toEqual([400, "invalid_payload"]);
    const version = await stage.call("GET", "/jobs", undefined, { "OJS-Version": "9.0" });
    expect([version.status, version.body.error.code]).toEqual([422, "unsupported"]);
  });

  it("answers what it does not serve with 404, and a wrong method with 405", async () => {
    await using stage = await openStage();
    const nothing = await stage.get("/nothing");
    expect([nothing.status, nothing.body.error.code]).toEqual([404, "not_found"]);
    expect((await stage.call("PUT", "/jobs", {})).status).toBe(405);
  });

  it("a 500 shows no internal details", async () => {
    await using stage = await openStage();
    stage.engine.store.jobs.load = () => Promise.reject(new Error("secret password in a stack"));
    const { status, body } = await stage.get("/jobs/01890000-0000-7000-8000-000000000001");
    expect([status, body.error.code]).toEqual([500, "internal_error"]);
    expect(JSON.stringify(body)).not.toContain("secret");
  });
});

describe("looking and changing (4.5, 4.6)", () => {
  it("lists jobs by queue and state, page by page", async () => {
    await using stage = await openStage();
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) ids.push((await stage.enqueue({ queue: "list" })).id);
    await stage.enqueue();
    const first = await stage.get("/jobs?queue=list&state=available&limit=3");
    const second = await stage.get(`/jobs?queue=list&limit=3&cursor=${first.body.pagination.next_cursor}`);
    const read = [...first.body.jobs, ...second.body.jobs].map(({ id }) => id);
    expect([read, second.body.pagination.has_more]).toEqual([ids, false]);
    for (const query of ["limit=0", "limit=x", "state=odd", "cursor=nope", "queue=NO"])
      expect([(await stage.get(`/jobs?${query}`)).status, query]).toEqual([400, query]);
  });

  it("dead letters are listed, run again and deleted", async () => {
    await using stage = await openStage();
    const dead = async () => {
      const { id } = await stage.enqueue({ retry: { max_attempts: 1, on_exhaustion: "dead_letter" } });
      await stage.fetch();
      await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
      return id;
    };
    const [first, second] = [await dead(), await dead()];
    const { body } = await stage.get("/dead-letter");
    expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual([first, second]);
    const again = await stage.post(`/dead-letter/${first}/retry`);
    expect(again.body.job).toMatchObject({ state: "available", attempt: 0 });
    expect([again.body.job.error, again.body.job.errors.length]).toEqual([undefined, 1]);
    expect((await stage.call("DELETE", `/dead-letter/${second}`)).body).toEqual({
      deleted: true,
      job_id: second,
    });
    expect((await stage.get(`/jobs/${second}`)).status).toBe(404);
    expect((await stage.call("DELETE", `/dead-letter/${first}`)).status).toBe(404);
  });

  it("explains who set which limit", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ timeout: 5 });
    const { body } = await stage.get(`/jobs/${id}/explain`);
    expect(JSON.stringify(body.explanation)).toContain("enqueue");
  });

  it("the manifest, health and readiness are open to everybody", async () => {
    await using stage = await openStage();
    const manifest = await stage.call("GET", "/ojs/manifest");
    expect(manifest.body).toMatchObject({
      specversion: "1.0",
      conformance_level: 4,
      implementation: { name: "curfew" },
    });
    expect((await stage.get("/health")).body.backend).toMatchObject({ type: "memory", status: "healthy" });
    const metrics = await stage.call("GET", "http://127.0.0.1/metrics");
    expect(metrics.headers.get("content-type")).toBe("text/plain");
  });

  it("the hooks of the conformance suite are off unless asked for", async () => {
    const reject = { type: "test.middleware.reject", args: [], meta: { ojs_validate: true } };
    const directive = { metadata: { test_directive: "terminate" } };
    for (const conformance of [false, true]) {
      await using stage = await openStage({}, { conformance });
      expect((await stage.post("/jobs", reject)).status).toBe(conformance ? 422 : 201);
      const { id } = await stage.enqueue({ ...directive, queue: "hook" });
      await stage.fetch({ queues: ["hook"] });
      const { body } = await stage.post("/workers/heartbeat", { worker_id: "w-1", active_jobs: [id] });
      expect(body.state).toBe(conformance ? "terminate" : "running");
    }
  });
});

describe("the OpenAPI document", () => {
  const replyOf = (method: string, path: string) =>
    ROUTES.find((route) => route.method === method && route.path === path)?.reply as ZodType;

  it("describes what is really answered", async () => {
    await using stage = await openStage();
    const answers: [string, string, unknown][] = [];
    const add = async (method: string, path: string, url: string, body?: unknown) =>
      answers.push([method, path, (await stage.call(method, url, body)).body]);
    const { id } = await stage.enqueue({ total_timeout: 60, expires_at: "+PT1M" });
    await add("POST", "/ojs/v1/jobs", "/jobs", { type: "b", args: [1, 2] });
    await add("POST", "/ojs/v1/workers/fetch", "/workers/fetch", { queues: ["default"], count: 2 });
    await add("PUT", "/ojs/v1/jobs/:id/progress", `/jobs/${id}/progress`, { progress: 0.5 });
    await add("PUT", "/ojs/v1/jobs/:id/checkpoint", `/jobs/${id}/checkpoint`, { state: [1] });
    await add("POST", "/ojs/v1/workers/heartbeat", "/workers/heartbeat", {
      worker_id: "w",
      active_jobs: [id],
    });
    await add("POST", "/ojs/v1/workers/nack", "/workers/nack", { job_id: id, error: { message: "no" } });
    await add("GET", "/ojs/v1/jobs/:id", `/jobs/${id}`);
    await add("GET", "/ojs/v1/jobs", "/jobs");
    await add("GET", "/ojs/v1/events", "/events");
    await add("GET", "/ojs/v1/health", "/health");
    for (const [method, path, body] of answers) {
      const checked = replyOf(method, path).safeParse(body);
      expect([method, path, checked.error?.issues]).toEqual([method, path, undefined]);
    }
  });

  it("has every route, and refers only to what it holds", async () => {
    await using stage = await openStage();
    const { body } = await stage.call("GET", "http://127.0.0.1/openapi.json");
    const count = Object.values(body.paths).flatMap((path) => Object.keys(path as object)).length;
    expect(count).toBe(ROUTES.length);
    const refs = [...JSON.stringify(body).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect(refs.length).toBeGreaterThan(50);
    for (const name of new Set(refs)) expect(body.components.schemas).toHaveProperty(name as string);
  });
});
