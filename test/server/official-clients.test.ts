import { describe, expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { fits } from "./fits.ts";
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
    "/unique-jobs",
  ];

  it.each(LISTS)("reads %s as a list of items with pages", async (path) => {
    await using stage = await openStage();
    await stage.enqueue();
    const { status, body } = await stage.get(path);
    expect([status, Array.isArray(body.items), typeof body.pagination]).toEqual([200, true, "object"]);
  });

  it.each([
    ["/crons", [["a", "b"], ["c"], []]],
    // The newest first.
    ["/workflows", [["c", "b"], ["a"], []]],
  ])("leafs through %s by the number of the page", async (path, expected) => {
    await using stage = await openStage();
    for (const name of ["a", "b", "c"]) {
      await stage.post("/cron", { name, cron: "@daily", type: "a", args: [] });
      await stage.post("/workflows", { type: "group", name, jobs: [{ type: "a", args: [] }] });
    }
    const pages = [];
    for (const page of [1, 2, 3]) pages.push((await stage.get(`${path}?page=${page}&per_page=2`)).body);
    expect(pages.map(({ items }) => items.map(({ name }: { name: string }) => name))).toEqual(expected);
    expect(pages.map(({ pagination }) => pagination)).toMatchObject([
      { page: 1, per_page: 2, total: 3, has_more: true },
      { page: 2, per_page: 2, total: 3, has_more: false, total_is_exact: true },
      { page: 3, has_more: false },
    ]);
  });

  it("finds workflows by their state", async () => {
    await using stage = await openStage();
    const { body } = await stage.post("/workflows", { type: "group", jobs: [{ type: "a", args: [] }] });
    await stage.post("/workflows", { type: "group", jobs: [{ type: "a", args: [] }] });
    await stage.post(`/workflows/${body.id}/cancel`);
    const ids = async (state: string) =>
      (await stage.get(`/workflows?state=${state}`)).body.items.map(({ id }: { id: string }) => id);
    expect(await ids("cancelled")).toEqual([body.id]);
    expect(await ids("active")).toHaveLength(1);
    expect((await stage.get("/workflows?state=odd")).status).toBe(400);
  });

  it("shows how priorities are spread", async () => {
    await using stage = await openStage();
    for (const priority of [5, 0, 5, -3]) await stage.enqueue({ priority });
    await stage.enqueue({ priority: 9, queue: "other" });
    const answered = await stage.get("/queues/default/priority-stats");
    fits("GET", "/queues/:queue/priority-stats", answered);
    expect(answered.body).toMatchObject({
      queue: "default",
      distribution: [
        { priority: 5, count: 2 },
        { priority: 0, count: 1 },
        { priority: -3, count: 1 },
      ],
      is_complete: true,
    });
  });

  it("shows unique keys with the jobs that hold them, page by page", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    const held = await stage.enqueue({ unique: { keys: ["type", "args"] } }, { args: ["held"] });
    const kept = await stage.enqueue({ unique: { keys: ["args"], period: "PT1H" } }, { args: ["kept"] });
    const answered = await stage.get("/unique-jobs?page=1&per_page=50");
    fits("GET", "/unique-jobs", answered);
    const { items, pagination } = answered.body;
    expect(pagination).toMatchObject({ total: 2, total_is_exact: true, has_more: false });
    const byJob = new Map(items.map((item: { job_id: string }) => [item.job_id, item]));
    expect(byJob.get(held.id)).toMatchObject({ type: "test.job", queue: "default", state: "available" });
    expect(byJob.get(kept.id)).toMatchObject({ state: "available", locked_until: expect.any(String) });
    const keys = items.map(({ key }: { key: string }) => key);
    const second = (await stage.get("/unique-jobs?page=2&per_page=1")).body;
    expect(second.items[0].key).toBe(keys[1]);
    const next = (await stage.get(`/unique-jobs?cursor=${encodeURIComponent(keys[0])}`)).body;
    expect(next.items.map(({ key }: { key: string }) => key)).toEqual([keys[1]]);
    await stage.post(`/jobs/${held.id}/cancel`);
    // The period goes on after its job has ended.
    await stage.post(`/jobs/${kept.id}/cancel`);
    expect((await stage.get("/unique-jobs")).body.items).toMatchObject([
      { job_id: kept.id, state: "cancelled" },
    ]);
    await stage.advance("61m");
    expect((await stage.get("/unique-jobs")).body.items).toEqual([]);
  });

  it("turns maintenance on and off: fetches get nothing, and jobs are taken in", async () => {
    await using stage = await openStage();
    const path = "/admin/system/maintenance";
    expect((await stage.get(path)).body).toMatchObject({ enabled: false, reason: null });
    const begun = await stage.post(path, { enabled: true, reason: "migration", duration: "PT30M" });
    fits("POST", path, begun);
    expect(begun.body).toMatchObject({ enabled: true, maintenance: true, reason: "migration" });
    expect(begun.body.ends_at).toBe(begun.body.estimated_end);
    expect((await stage.get("/admin/maintenance")).body).toEqual(begun.body);
    await stage.enqueue();
    expect(await stage.fetch()).toBeUndefined();
    expect((await stage.call("PUT", path, { enabled: false })).body.enabled).toBe(false);
    expect(await stage.fetch()).toBeDefined();
    const { items } = (await stage.get("/admin/audit?action=maintenance.begin")).body;
    expect(items).toMatchObject([{ reason: "migration", details: { reason: "migration" } }]);
    expect((await stage.post(path, { enabled: true, duration: "soon" })).status).toBe(400);
    expect((await stage.post(path, {})).status).toBe(400);
  });

  it("shows middleware, settings and the health of the store", async () => {
    await using stage = await openStage({}, { limits: { body: 5_000 } });
    fits("GET", "/middleware", await stage.get("/middleware"));
    const work = stage.engine.work({
      processors: [processor(defineJob({ type: "a" }), () => {})],
      middleware: [
        async function timing(_context, next) {
          return next();
        },
      ],
    });
    expect((await stage.get("/middleware")).body).toEqual({
      enqueue: [],
      execution: [{ name: "timing", phase: "execution", order: 1 }],
    });
    const closing = work.close();
    await stage.advance("1s");
    await closing;
    const config = await stage.get("/admin/system/config");
    fits("GET", "/admin/system/config", config);
    expect(config.body).toMatchObject({ backend: "memory", limits: { body: 5_000 }, authentication: false });
    expect((await stage.get("/health")).body).toMatchObject({
      uptime_seconds: 1,
      backend: { latency_ms: expect.any(Number) },
    });
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
      progress: 0,
      steps: [{ state: "available", type: "a", progress: null }],
    });
    expect((await stage.get(`/workflows/${flow.id}`)).body.steps).toMatchObject([
      { type: "a", state: "available", job_ids: [expect.any(String)] },
    ]);
    expect((await stage.post(`/workflows/${flow.id}/cancel`)).body.state).toBe("cancelled");
    expect((await stage.get("/admin/stats")).body).toMatchObject({ throughput: expect.any(Object) });
    expect((await stage.get("/admin/stats/history")).status).toBe(200);
    expect((await stage.get("/admin/dead-letter/stats")).body.total).toBe(0);
  });
});
