import { describe, expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

/** What the public JavaScript SDK sends with every request. */
const SDK = {
  "Content-Type": "application/openjobspec+json",
  Accept: "application/openjobspec+json",
  "OJS-Version": "1.0",
  "X-Request-ID": "0198a1b2-0000-7000-8000-000000000001",
};

const sdk = (stage: Stage) => ({
  send: (method: string, path: string, body?: unknown) => stage.call(method, path, body, SDK),
});

/** Requests as version 0.4.0 of the SDK writes them, and the fields of the replies that it reads. */
describe("the public JavaScript SDK", () => {
  it("enqueues with options that are all in one place, and reads the job from `job`", async () => {
    await using stage = await openStage();
    const { status, body, headers } = await sdk(stage).send("POST", "/jobs", {
      type: "email.send",
      args: [{ to: "a@b.c" }],
      meta: { trace: "1" },
      options: {
        queue: "mail",
        priority: 5,
        timeout_ms: 30_000,
        expires_at: "2099-12-31T23:59:59Z",
        tags: ["x"],
        visibility_timeout_ms: 30_000,
        retry: { max_attempts: 5 },
        unique: { key: ["to"], period: "PT1H", on_conflict: "ignore", states: ["available"] },
      },
    });
    expect([status, headers.get("x-request-id")]).toEqual([201, SDK["X-Request-ID"]]);
    expect(body.job).toMatchObject({
      state: "available",
      queue: "mail",
      tags: ["x"],
      expires_at: "2099-12-31T23:59:59Z",
    });
    // It would set a timer to `timeout` milliseconds, so that name is never in a reply.
    expect(body.job).not.toHaveProperty("timeout");
  });

  it("fetches, beats with a number and a list of ids, and reports without saying who it is", async () => {
    await using stage = await openStage();
    const { send } = sdk(stage);
    const { id } = await stage.enqueue();
    const worker_id = "worker_0198a1b2";
    const fetched = await send("POST", "/workers/fetch", {
      queues: ["default"],
      count: 10,
      worker_id,
      visibility_timeout_ms: 30_000,
    });
    expect(fetched.body.jobs.map((job: { id: string }) => job.id)).toEqual([id]);
    const beat = await send("POST", "/workers/heartbeat", {
      worker_id,
      state: "running",
      active_jobs: 1,
      active_job_ids: [id],
      hostname: "h",
      pid: 1,
      queues: ["default"],
      concurrency: 10,
      labels: [],
    });
    expect([beat.status, beat.body.state]).toEqual([200, "running"]);
    expect(
      (await send("POST", "/workers/progress", { job_id: id, percentage: 40, message: "half", data: {} }))
        .status,
    ).toBe(200);
    expect((await send("POST", "/workers/ack", { job_id: id, result: { ok: true } })).body.state).toBe(
      "completed",
    );
    const late = await send("POST", "/workers/nack", {
      job_id: id,
      error: { code: "handler_error", message: "late", retryable: true, details: {} },
    });
    expect([late.status, late.body.error.code]).toEqual([409, "conflict"]);
  });

  it("keeps checkpoints under its doubled path", async () => {
    await using stage = await openStage();
    const { send } = sdk(stage);
    const { id } = await stage.enqueue();
    const path = `/ojs/v1/ojs/v1/checkpoints/${id}`;
    expect((await send("GET", `${path}/resume`)).body).toEqual({ has_checkpoint: false, checkpoint: null });
    await send("POST", path, { state: { at: 3 }, step_index: 2, metadata: { name: "upload" } });
    expect((await send("GET", `${path}/resume`)).body).toMatchObject({
      has_checkpoint: true,
      checkpoint: { state: { at: 3 }, step_index: 2, metadata: { name: "upload" } },
    });
    expect((await send("DELETE", path)).status).toBe(200);
  });

  it("reads workflows flat, crons from `cron_job`, queues and health by their own names", async () => {
    await using stage = await openStage();
    const { send } = sdk(stage);
    const { body: flow } = await send("POST", "/workflows", {
      type: "group",
      jobs: [{ type: "a", args: [] }],
    });
    expect(flow).toMatchObject({
      id: flow.workflow.id,
      type: "group",
      state: "running",
      metadata: { job_count: 1 },
    });
    const cron = await send("POST", "/cron", { name: "c", cron: "@hourly", type: "a", args: [] });
    expect(cron.body.cron_job.name).toBe("c");
    expect((await send("GET", "/cron")).body).toMatchObject({ cron_jobs: [{ name: "c" }], pagination: {} });
    expect((await send("GET", "/queues")).body.queues[0]).toMatchObject({
      name: "default",
      status: "active",
    });
    expect((await send("GET", "/queues/default/stats")).body).toMatchObject({
      available: expect.any(Number),
    });
    expect((await send("GET", "/health")).body).toMatchObject({
      status: "healthy",
      version: expect.any(String),
    });
    const missing = await send("GET", "/jobs/0198a1b2-0000-7000-8000-00000000000f");
    expect(missing.body.error.details).toMatchObject({
      resource_type: "job",
      resource_id: expect.any(String),
    });
  });
});

/** The calls of the public admin page, and what it reads of each. */
describe("the public admin page", () => {
  const LISTS = [
    "/admin/queues",
    "/admin/jobs",
    "/admin/workers",
    "/admin/dead-letter",
    "/crons",
    "/workflows",
    "/rate-limits",
    "/events",
  ];

  it.each(LISTS)("reads %s as a list of items with pages", async (path) => {
    await using stage = await openStage();
    await stage.enqueue();
    const { status, body } = await stage.get(path);
    expect([status, Array.isArray(body.items), typeof body.pagination]).toEqual([200, true, "object"]);
  });

  it("shows the pages of what the manifest says is there", async () => {
    await using stage = await openStage();
    const { body } = await stage.get("/ojs/manifest");
    expect(body.capabilities).toMatchObject({
      cron: true,
      workflows: true,
      rate_limiting: true,
      unique_jobs: true,
      events: true,
      dead_letter: true,
    });
  });

  it("looks at a job and acts on it", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    expect((await stage.get(`/admin/jobs/${id}`)).body).toMatchObject({ id, state: "available" });
    expect((await stage.call("PATCH", `/admin/jobs/${id}`, { priority: 9 })).status).toBe(200);
    expect((await stage.get(`/jobs/${id}/progress`)).status).toBe(200);
    expect((await stage.get(`/jobs/${id}/result`)).status).toBe(409);
    expect((await stage.post(`/admin/jobs/${id}/cancel`)).status).toBe(200);
    expect((await stage.post("/admin/jobs/bulk/retry", { filter: {} })).status).toBe(400);
  });

  it("runs queues, crons and workflows", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    expect((await stage.post("/admin/queues/default/pause")).body.paused).toBe(true);
    expect((await stage.post("/admin/queues/default/resume")).body.paused).toBe(false);
    await stage.post("/cron", { name: "c", cron: "@daily", type: "a", args: [] });
    expect((await stage.call("PATCH", "/crons/c", { enabled: false })).body.enabled).toBe(false);
    const { body: flow } = await stage.post("/workflows", {
      type: "chain",
      steps: [{ type: "a", args: [] }],
    });
    expect((await stage.get(`/workflows/${flow.id}/progress`)).body).toMatchObject({
      total: 1,
      completed: 0,
    });
    expect((await stage.post(`/workflows/${flow.id}/cancel`)).body.state).toBe("cancelled");
    expect((await stage.get("/admin/stats")).body).toMatchObject({ throughput: expect.any(Object) });
    expect((await stage.get("/admin/stats/history")).status).toBe(200);
    expect((await stage.get("/admin/dead-letter/stats")).body.total).toBe(0);
  });
});
