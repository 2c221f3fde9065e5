import { describe, expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { fits } from "./fits.ts";
import { openStage, type Stage } from "./stage.ts";

/** What operators ask and order over HTTP, in the shapes that the suites and the admin UI read. */

async function deadLetter(stage: Stage, options: object = {}): Promise<string> {
  const queue = "dead";
  const { id } = await stage.enqueue({
    queue,
    retry: { max_attempts: 1, on_exhaustion: "dead_letter" },
    ...options,
  });
  const { fence } = await stage.fetch({ queues: [queue] });
  await stage.post("/workers/nack", { job_id: id, fence, error: { type: "Broken", message: "no" } });
  return id;
}

async function actionsOf(stage: Stage): Promise<string[]> {
  const { body } = await stage.get("/admin/audit");
  return body.items.map(({ action }: { action: string }) => action);
}

describe("jobs for operators", () => {
  it("are listed newest first, by page and by cursor, with filters and a total", async () => {
    await using stage = await openStage();
    const ids: string[] = [];
    for (let nth = 0; nth < 5; nth++) {
      ids.unshift((await stage.enqueue({ queue: nth % 2 ? "odd" : "even" })).id);
      await stage.advance("1s");
    }
    const first = await stage.get("/admin/jobs?per_page=2");
    fits("GET", "/admin/jobs", first);
    expect(first.body.items.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2));
    expect(first.body.pagination).toMatchObject({
      total: 5,
      total_is_exact: true,
      page: 1,
      per_page: 2,
      has_more: true,
    });
    const second = await stage.get("/admin/jobs?per_page=2&page=2");
    const byCursor = await stage.get(`/admin/jobs?per_page=2&cursor=${first.body.pagination.next_cursor}`);
    expect(second.body.items).toEqual(byCursor.body.items);
    expect(second.body.items.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2, 4));
    expect((await stage.get("/admin/jobs?per_page=2&page=9")).body.items).toEqual([]);
    const odd = await stage.get("/admin/jobs?queue=odd&state=available&order=asc");
    expect(odd.body.pagination.total).toBe(2);
    expect(odd.body.items.map(({ id }: { id: string }) => id)).toEqual([ids[3], ids[1]]);
    const since = new Date(stage.engine.now() - 2_500).toISOString();
    expect((await stage.get(`/admin/jobs?since=${since}`)).body.items).toHaveLength(2);
    expect((await stage.get(`/admin/jobs?until=${since}`)).body.items).toHaveLength(3);
    expect((await stage.get("/admin/jobs?state=completed")).body.pagination.total).toBe(0);
  });

  it.each([
    ["state=lost", "state"],
    ["page=0", "page"],
    ["per_page=5000", "per_page"],
    ["page=1000&per_page=200", "page"],
    ["cursor=nonsense", "cursor"],
    ["since=yesterday", "since"],
    ["sort=colour", "sort"],
  ])("refuse %s and name the field", async (query, field) => {
    await using stage = await openStage();
    const { status, body } = await stage.get(`/admin/jobs?${query}`);
    expect([status, body.error.code]).toEqual([400, "invalid_request"]);
    expect(body.error.message).toContain(field);
  });

  it("are shown as the bare envelope and as `job`, with the lists that the admin UI reads", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ queue: "q" }, { args: [{ a: 1 }, 2], x_mine: "kept" });
    const shown = await stage.get(`/admin/jobs/${id}`);
    fits("GET", "/admin/jobs/:id", shown);
    expect(shown.body).toMatchObject({ id, queue: "q", state: "available", errors: [], x_mine: "kept" });
    expect(shown.body.metadata.created_at).toBe(shown.body.created_at);
    expect(shown.body.job).toEqual(await stage.job(id));
    expect((await stage.get("/admin/jobs/none")).status).toBe(404);
  });

  it("are cancelled, retried and given another priority, and the audit says by whom", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const raised = await stage.call("PATCH", `/admin/jobs/${id}`, { priority: 7 });
    fits("PATCH", "/admin/jobs/:id", raised);
    expect([raised.status, raised.body.priority]).toEqual([200, 7]);
    expect((await stage.call("PATCH", `/admin/jobs/${id}`, { priority: 101 })).status).toBe(400);
    const cancelled = await stage.post(`/admin/jobs/${id}/cancel`);
    expect([cancelled.status, cancelled.body.state, cancelled.body.job.state]).toEqual([
      200,
      "cancelled",
      "cancelled",
    ]);
    expect((await stage.post(`/admin/jobs/${id}/cancel`)).status).toBe(409);
    const dead = await deadLetter(stage);
    const retried = await stage.post(`/admin/jobs/${dead}/retry`);
    expect([retried.status, retried.body.state, retried.body.attempt]).toEqual([200, "available", 0]);
    expect(await actionsOf(stage)).toEqual(["job.retry", "job.cancel", "job.prioritise"]);
    const { body } = await stage.get(`/admin/audit?job_id=${id}&per_page=1`);
    expect(body.items).toMatchObject([{ actor: "local", action: "job.cancel", job_id: id }]);
    expect(body.pagination.has_more).toBe(true);
    const next = await stage.get(
      `/admin/audit?job_id=${id}&per_page=1&cursor=${body.pagination.next_cursor}`,
    );
    fits("GET", "/admin/audit", next);
    expect(next.body.items).toMatchObject([{ action: "job.prioritise", details: { priority: 7 } }]);
  });
});

describe("bulk actions", () => {
  it("a bulk action needs confirm and a filter or ids", async () => {
    await using stage = await openStage();
    for (const action of ["retry", "cancel", "delete"]) {
      const bare = await stage.post(`/admin/jobs/bulk/${action}`, { filter: { queue: "q" } });
      expect([bare.status, bare.body.error.message.slice(0, 8)]).toEqual([400, "confirm:"]);
      const all = await stage.post(`/admin/jobs/bulk/${action}`, { filter: {}, confirm: true });
      expect([all.status, all.body.error.message.slice(0, 7)]).toEqual([400, "filter:"]);
      const typo = await stage.post(`/admin/jobs/bulk/${action}`, { filter: { que: "q" }, confirm: true });
      expect(typo.status).toBe(400);
    }
  });

  it("bulk actions count in a dry run, act by filter or ids, continue by cursor, and write events and audit entries", async () => {
    await using stage = await openStage();
    const ids: string[] = [];
    for (let nth = 0; nth < 4; nth++) ids.push((await stage.enqueue({ queue: "q" })).id);
    const other = (await stage.enqueue({ queue: "other" })).id;
    const dry = await stage.post("/admin/jobs/bulk/cancel", { filter: { queue: "q" }, dry_run: true });
    fits("POST", "/admin/jobs/bulk/cancel", dry);
    expect(dry.body).toMatchObject({ dry_run: true, matched: 4, succeeded: 0, count: 4 });
    const some = await stage.post("/admin/jobs/bulk/cancel", {
      filter: { queue: "q" },
      limit: 3,
      confirm: true,
    });
    expect(some.body).toMatchObject({ action: "cancel", succeeded: 3, failed: 0, is_complete: false });
    const rest = await stage.post("/admin/jobs/bulk/cancel", {
      filter: { queue: "q" },
      confirm: true,
      cursor: some.body.next_cursor,
    });
    expect(rest.body).toMatchObject({ succeeded: 1, is_complete: true, next_cursor: null });
    for (const id of ids) expect((await stage.job(id)).state).toBe("cancelled");
    expect((await stage.job(other)).state).toBe("available");
    const { body } = await stage.get("/events?types=job.cancelled");
    expect(body.events.map(({ subject }: { subject: string }) => subject)).toEqual(ids);
    const gone = await stage.post("/admin/jobs/bulk/delete", {
      job_ids: [...ids.slice(0, 2), other],
      confirm: true,
    });
    expect(gone.body).toMatchObject({ succeeded: 2 });
    expect((await stage.get(`/jobs/${ids[0]}`)).status).toBe(404);
    expect((await stage.job(other)).state).toBe("available");
    // One entry for each batch.
    expect(await actionsOf(stage)).toEqual(["bulk.delete", "bulk.cancel", "bulk.cancel"]);
  });

  it("run dead letters again by their last error", async () => {
    await using stage = await openStage();
    const id = await deadLetter(stage);
    const none = await stage.post("/admin/jobs/bulk/retry", {
      filter: { error_type: "Other" },
      confirm: true,
    });
    expect(none.body.succeeded).toBe(0);
    const one = await stage.post("/admin/jobs/bulk/retry", {
      filter: { error_type: "Broken" },
      confirm: true,
    });
    expect(one.body).toMatchObject({ matched: 1, succeeded: 1 });
    expect((await stage.job(id)).state).toBe("available");
  });
});

describe("dead letters for operators", () => {
  it("are listed, counted, retried and deleted", async () => {
    await using stage = await openStage();
    const ids: string[] = [];
    for (let nth = 0; nth < 3; nth++) {
      ids.unshift(await deadLetter(stage));
      await stage.advance("1s");
    }
    const list = await stage.get("/admin/dead-letter?per_page=2");
    fits("GET", "/admin/dead-letter", list);
    expect(list.body.items.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2));
    expect(list.body.pagination).toMatchObject({ total: 3, page: 1, has_more: true });
    const next = await stage.get(`/admin/dead-letter?cursor=${list.body.pagination.next_cursor}`);
    expect(next.body.items).toHaveLength(1);
    const stats = await stage.get("/admin/dead-letter/stats");
    fits("GET", "/admin/dead-letter/stats", stats);
    expect(stats.body).toMatchObject({ total: 3, by_queue: { dead: 3 }, by_error_type: { Broken: 3 } });
    expect(stats.body.oldest_at < stats.body.newest_at).toBe(true);
    const removed = await stage.call("DELETE", `/admin/dead-letter/${ids[0]}`);
    expect([removed.status, removed.body]).toEqual([204, null]);
    expect((await stage.call("DELETE", `/admin/dead-letter/${ids[0]}`)).status).toBe(404);
    const again = await stage.post(`/admin/dead-letter/${ids[1]}/retry`);
    fits("POST", "/admin/dead-letter/:id/retry", again);
    expect(again.body).toMatchObject({ state: "available", job: { attempt: 0 } });
    expect((await stage.post("/admin/dead-letter/retry", { filter: {} })).status).toBe(400);
    expect((await stage.post("/admin/dead-letter/retry", { confirm: true })).status).toBe(400);
    const all = await stage.post("/admin/dead-letter/retry", { filter: {}, confirm: true });
    expect(all.body).toMatchObject({ action: "retry", succeeded: 1 });
    expect((await stage.get("/admin/dead-letter/stats")).body).toMatchObject({ total: 0, oldest_at: null });
  });

  it("are purged by age", async () => {
    await using stage = await openStage();
    await deadLetter(stage);
    await stage.advance("1h");
    const young = await deadLetter(stage);
    const older_than = new Date(stage.engine.now() - 1_800_000).toISOString();
    const purged = await stage.call("DELETE", "/admin/dead-letter", { older_than, confirm: true });
    fits("DELETE", "/admin/dead-letter", purged);
    expect(purged.body).toMatchObject({ action: "delete", succeeded: 1 });
    expect((await stage.get(`/admin/dead-letter/${young}`)).status).toBe(200);
    expect((await stage.call("DELETE", "/admin/dead-letter", { older_than })).status).toBe(400);
  });
});

describe("workers for operators", () => {
  const beat = (stage: Stage, worker_id: string, more: object = {}) =>
    stage.post("/workers/heartbeat", { worker_id, active_jobs: 2, queues: ["a"], hostname: "h", ...more });

  it("workers are listed with their reported fields and a summary", async () => {
    await using stage = await openStage();
    await beat(stage, "w-1", { concurrency: 4 });
    await beat(stage, "w-2", { state: "drain" });
    const { body, ...answer } = await stage.get("/admin/workers");
    fits("GET", "/admin/workers", { body, ...answer });
    expect(body.summary).toMatchObject({ total: 2, running: 1, quiet: 1, stale: 0 });
    expect(body.pagination).toMatchObject({ total: 2, page: 1 });
    expect(body.items[0]).toMatchObject({ id: "w-1", hostname: "h", concurrency: 4, active_jobs: 2 });
    const one = await stage.get("/admin/workers/w-2");
    fits("GET", "/admin/workers/:id", one);
    expect(one.body).toMatchObject({ id: "w-2", state: "quiet", worker: { id: "w-2" } });
    expect((await stage.get("/admin/workers/none")).status).toBe(404);
  });

  it("a quiet worker hears it with its next beat, gets no jobs, and fetches again after resume", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    expect((await stage.post("/admin/workers/w-1/quiet")).status).toBe(404);
    await beat(stage, "w-1");
    const told = await stage.post("/admin/workers/w-1/quiet");
    fits("POST", "/admin/workers/:id/quiet", told);
    expect([told.status, told.body.state]).toEqual([200, "quiet"]);
    expect((await beat(stage, "w-1")).body).toMatchObject({ state: "quiet", directive: "quiet" });
    await stage.advance("20s");
    // Every beat writes the worker anew, and the word of the operator stands.
    expect((await beat(stage, "w-1")).body.state).toBe("quiet");
    expect(await stage.fetch()).toBeUndefined();
    expect((await stage.post("/admin/workers/w-1/resume")).body.state).toBe("running");
    expect((await beat(stage, "w-1")).body.state).toBe("running");
    expect(await stage.fetch()).toBeDefined();
    expect((await stage.post("/admin/workers/w-1/terminate")).body.state).toBe("terminate");
    expect((await beat(stage, "w-1")).body.state).toBe("terminate");
    expect(await actionsOf(stage)).toEqual(["worker.terminate", "worker.resume", "worker.quiet"]);
  });

  it("a directive reaches a worker that beats at another server", async () => {
    await using stage = await openStage();
    await using other = await openStage({ store: stage.engine.store });
    await beat(stage, "w-1");
    await other.post("/admin/workers/w-1/quiet");
    let state = "";
    for (let beats = 0; beats < 10 && state !== "quiet"; beats++) {
      await stage.advance("1s");
      ({ state } = (await beat(stage, "w-1")).body);
    }
    expect(state).toBe("quiet");
  });

  it("a silent worker is forgotten, and a new one of its name has no directive", async () => {
    await using stage = await openStage();
    await beat(stage, "w-1");
    expect((await stage.call("DELETE", "/admin/workers/w-1")).status).toBe(409);
    await stage.advance("31s");
    expect((await stage.get("/admin/workers")).body.summary).toMatchObject({ total: 1, stale: 1 });
    const gone = await stage.call("DELETE", "/admin/workers/w-1");
    expect([gone.status, gone.body]).toEqual([200, { deleted: true, worker_id: "w-1" }]);
    expect((await stage.get("/admin/workers")).body.items).toEqual([]);
    await beat(stage, "w-2");
    await stage.post("/admin/workers/w-2/quiet");
    await stage.advance("3m");
    await beat(stage, "w-2");
    await stage.advance("10s");
    expect((await beat(stage, "w-2")).body.state).toBe("running");
  });

  it("in-process workers are listed and refuse directives", async () => {
    await using stage = await openStage();
    const job = defineJob({ type: "own.job", queue: "mine" });
    const worker = stage.engine.work({
      queues: { mine: { concurrency: 1 } },
      processors: [processor(job, async () => {})],
    });
    await stage.advance("1s");
    const { body } = await stage.get("/admin/workers");
    expect(body.items).toMatchObject([{ remote: false, state: "running", queues: ["mine"] }]);
    const { status, body: refused } = await stage.post(`/admin/workers/${body.items[0].id}/quiet`);
    expect([status, refused.error.message]).toEqual([409, expect.stringContaining("stop its process")]);
    await worker.close();
  });
});

describe("figures for operators", () => {
  it("stats count waiting, running and recently ended jobs, and the throughput", async () => {
    await using stage = await openStage();
    await deadLetter(stage);
    await stage.enqueue();
    const { id, fence } = await stage.fetch();
    await stage.post("/workers/ack", { job_id: id, fence });
    await stage.enqueue();
    await stage.enqueue({ delay_until: "+PT1H" });
    await stage.post("/workers/heartbeat", { worker_id: "w-1" });
    const stats = await stage.get("/admin/stats");
    fits("GET", "/admin/stats", stats);
    expect(stats.body).toMatchObject({
      queues: 2,
      workers: 1,
      jobs: { available: 1, scheduled: 1, active: 0, completed: 1, discarded: 1, cancelled: 0 },
      throughput: { processed_per_minute: 0.4, failed_per_minute: 0.2 },
    });
  });

  it("the history has a point for every step, even without events", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    await stage.advance("10m");
    await stage.enqueue();
    const { body, ...answer } = await stage.get("/admin/stats/history?period=5m");
    fits("GET", "/admin/stats/history", { body, ...answer });
    expect(body.period).toBe("5m");
    expect(body.data.length).toBeGreaterThanOrEqual(12);
    const enqueued = body.data.map((point: { enqueued: number }) => point.enqueued);
    expect(enqueued.slice(-3)).toEqual([1, 0, 1]);
    const stamps: string[] = body.data.map((point: { timestamp: string }) => point.timestamp);
    expect(stamps).toEqual([...stamps].sort());
    const elsewhere = await stage.get("/admin/stats/history?period=1h&queue=elsewhere");
    expect(elsewhere.body.data.length).toBeGreaterThan(0);
    expect(elsewhere.body.data.every((point: { enqueued: number }) => point.enqueued === 0)).toBe(true);
    expect((await stage.get("/admin/stats/history?period=7m")).status).toBe(400);
    const wide = await stage.get("/admin/stats/history?period=1m&since=2020-01-01T00:00:00Z");
    expect([wide.status, wide.body.error.code]).toEqual([400, "invalid_request"]);
  });

  it("give advice on timeouts", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    const { id, fence } = await stage.fetch();
    await stage.post("/workers/ack", { job_id: id, fence });
    const advice = await stage.get("/admin/advise?timeout_ms=1000");
    fits("GET", "/admin/advise", advice);
    expect(advice.body.items).toMatchObject([
      { type: "test.job", verdict: "unknown", what_if: { timeout_ms: 1_000, runs: 1 } },
    ]);
  });
});
