import { describe, expect, it } from "vitest";
import { fits } from "./fits.ts";
import { openStage } from "./stage.ts";

/** The calls of the public command line, as its source has them, and what it prints of the replies. */
describe("the public command line", () => {
  it("lists jobs and dead letters with a total", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    await stage.enqueue({ queue: "other" });
    const listed = (await stage.get("/jobs?limit=1&state=available")).body;
    expect([listed.jobs.length, listed.total, listed.pagination.total]).toEqual([1, 2, 2]);
    expect((await stage.get("/jobs?state=available&queue=other")).body.total).toBe(1);
    // What has ended is counted in bounded steps, and the reply says whether it came to the end.
    expect((await stage.get("/jobs?state=completed")).body.total).toBe(0);
    expect((await stage.get("/dead-letter?limit=1")).body).toMatchObject({ jobs: [], total: 0 });
  });

  it("waits for a result, and reads the error of a job that failed", async () => {
    await using stage = await openStage();
    const [good, bad] = [await stage.enqueue(), await stage.enqueue({ retry: { max_attempts: 1 } })];
    const first = await stage.fetch();
    const second = await stage.fetch();
    const waiting = stage.get(`/jobs/${good.id}/result?wait=true&timeout=30`);
    const late = stage.get(`/jobs/${bad.id}/result?wait=true&timeout=1`);
    await stage.advance("1500ms");
    expect([(await late).status, (await late).body.error.details]).toEqual([408, { state: "active" }]);
    await stage.post("/workers/ack", { job_id: first.id, result: { ok: 1 } });
    expect((await waiting).body).toMatchObject({
      job_id: good.id,
      state: "completed",
      result: { ok: 1 },
      completed_at: expect.any(String),
    });
    await stage.post("/workers/nack", { job_id: second.id, error: { code: "x", message: "no" } });
    const failed = await stage.get(`/jobs/${bad.id}/result`);
    expect([failed.status, failed.body]).toMatchObject([
      200,
      { state: "discarded", error: { code: "x", message: "no" } },
    ]);
    expect(failed.body).not.toHaveProperty("result");
  });

  it("shows retries, with the policy", async () => {
    await using stage = await openStage();
    const retry = { max_attempts: 3, initial_interval: "PT10S", jitter: false };
    const { id } = await stage.enqueue({ retry });
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: id, error: { code: "x", message: "no" } });
    const answered = await stage.get(`/jobs/${id}/retries`);
    fits("GET", "/jobs/:id/retries", answered);
    expect(answered.body).toMatchObject({
      job_id: id,
      retries: [{ attempt: 1, state: "failed", error: "no", next_retry_at: expect.any(String) }],
      policy: { max_attempts: 3, backoff_strategy: "exponential" },
    });
  });

  it("cancels, retries and deletes many by ids or filter, without confirming", async () => {
    await using stage = await openStage();
    const [one, two, three] = [await stage.enqueue(), await stage.enqueue(), await stage.enqueue()];
    const cancelled = await stage.post("/jobs/bulk/cancel", { job_ids: [one.id, two.id] });
    fits("POST", "/jobs/bulk/cancel", cancelled);
    expect(cancelled.body).toMatchObject({ cancelled: 2, failed: 0, total_matched: 2 });
    const deleted = await stage.post("/jobs/bulk/delete", { filter: { state: "cancelled" } });
    expect(deleted.body).toMatchObject({ deleted: 2 });
    expect((await stage.post("/jobs/bulk/retry", { filter: { state: "discarded" } })).body.retried).toBe(0);
    expect((await stage.post("/jobs/bulk/cancel", {})).status).toBe(400);
    expect((await stage.job(three.id)).state).toBe("available");
  });

  it("changes the priority of a job", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    expect((await stage.call("PATCH", `/jobs/${id}`, { priority: 7 })).body.job.priority).toBe(7);
    expect((await stage.call("PATCH", `/jobs/${id}`, { priority: 255 })).status).toBe(400);
  });

  it("creates, configures and deletes queues", async () => {
    await using stage = await openStage();
    const made = await stage.post("/queues", { name: "mail", concurrency: 3, max_size: 10 });
    fits("POST", "/queues", made);
    expect(made.body.configuration).toMatchObject({ concurrency: 3, backpressure: { max_depth: 10 } });
    const changed = await stage.call("PUT", "/admin/queues/mail/config", { max_size: 5, retention: "7d" });
    expect(changed.body.config).toMatchObject({
      concurrency: 3,
      backpressure: { max_depth: 5 },
      retention: { completed: "PT604800S" },
    });
    const { id } = await stage.enqueue({ queue: "mail" });
    expect((await stage.call("DELETE", "/queues/mail")).status).toBe(409);
    await stage.post(`/jobs/${id}/cancel`);
    expect((await stage.call("DELETE", "/queues/mail")).body).toEqual({ deleted: true, name: "mail" });
    expect((await stage.get("/queues/mail")).body.configuration).toEqual({});
    expect((await stage.get("/queues/mail")).body).toMatchObject({ depth: 0, running: 0, paused: false });
    expect((await stage.get("/queues/mail/stats")).body.stats).toMatchObject({ dead: 0, scheduled: 0 });
  });

  it("tells all remote workers to be quiet, and to go on", async () => {
    await using stage = await openStage();
    for (const worker_id of ["w-1", "w-2"]) await stage.post("/workers/heartbeat", { worker_id });
    expect((await stage.get("/workers")).body.workers).toHaveLength(2);
    expect((await stage.post("/admin/workers/directive", { directive: "quiet" })).body).toEqual({
      directive: "quiet",
      workers: 2,
      is_complete: true,
    });
    const beat = async () => (await stage.post("/workers/heartbeat", { worker_id: "w-1" })).body.state;
    await stage.advance("6s");
    expect(await beat()).toBe("quiet");
    await stage.post("/admin/workers/directive", { directive: "resume" });
    await stage.advance("6s");
    expect(await beat()).toBe("running");
    expect((await stage.post("/admin/workers/directive", { directive: "dance" })).status).toBe(400);
  });

  it("registers a cron without arguments, triggers it, and reads its history", async () => {
    await using stage = await openStage();
    const made = await stage.post("/cron", {
      name: "c",
      expression: "0 9 * * *",
      job_template: { type: "a.b", options: { queue: "default" } },
    });
    expect(made.status).toBe(201);
    const { body } = await stage.post("/cron/c/trigger");
    expect(body.job_id).toBe(body.job.id);
    await stage.fetch();
    await stage.post("/workers/ack", { job_id: body.job_id });
    expect((await stage.get("/cron/c/history?limit=10")).body.executions).toMatchObject([
      {
        job_id: body.job_id,
        state: "completed",
        scheduled_at: expect.any(String),
        started_at: expect.any(String),
      },
    ]);
    await stage.post("/cron/c/pause");
    const names = async (enabled: boolean) =>
      (await stage.get(`/cron?enabled=${enabled}`)).body.cron_jobs.map(({ name }: { name: string }) => name);
    expect([await names(true), await names(false)]).toEqual([[], ["c"]]);
    // What it cannot change, it does not pretend to have changed.
    expect((await stage.call("PATCH", "/cron/c", { job_template: { type: "x" } })).status).toBe(400);
  });

  it("starts workflows whose steps name those that they wait for", async () => {
    await using stage = await openStage();
    const steps = [
      { id: "validate", type: "order.validate", args: ["order-123"] },
      { id: "charge", type: "payment.charge", args: ["order-123"], depends_on: ["validate"] },
    ];
    const { status, body } = await stage.post("/workflows", { name: "order-pipeline", steps });
    expect([status, body.type, body.name, body.steps_total]).toEqual([201, "graph", "order-pipeline", 2]);
    const first = await stage.fetch();
    expect([first.type, first.step_id]).toEqual(["order.validate", "validate"]);
    expect(await stage.fetch()).toBeUndefined();
    const circle = steps.map((step) => ({ ...step, depends_on: ["charge"] }));
    const refused = await stage.post("/workflows", { name: "x", steps: circle });
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining("steps")]);
    const { workflows, total } = (await stage.get("/workflows?limit=25&state=running")).body;
    expect([workflows[0].step_count, total]).toEqual([2, 1]);
  });

  it("reads counters as JSON, or for Prometheus", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    const answered = await stage.get("/metrics");
    fits("GET", "/metrics", answered);
    expect(answered.body).toMatchObject({ jobs_enqueued_total: 1, jobs_active: 0, jobs_available: 1 });
    const { headers, body } = await stage.get("/metrics?format=prometheus");
    expect([headers.get("content-type"), body]).toEqual(["text/plain", expect.stringContaining("# TYPE")]);
  });

  it("reads what happened to a job", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.enqueue();
    await stage.post(`/jobs/${id}/cancel`);
    await stage.advance("1s");
    const answered = await stage.get(`/events/${id}/history`);
    fits("GET", "/events/:id/history", answered);
    expect(
      answered.body.events.map(({ type, state }: { type: string; state: string }) => [type, state]),
    ).toEqual([
      ["job.enqueued", "available"],
      ["job.cancelled", "cancelled"],
    ]);
    expect(answered.body.events[0]).toMatchObject({ timestamp: expect.any(String), job_id: id });
    const missing = await stage.get("/events/0198a1b2-0000-7000-8000-00000000000f/history");
    expect(missing.status).toBe(404);
  });

  it("reads figures of one queue, and of the past", async () => {
    await using stage = await openStage();
    await stage.enqueue({ queue: "mine" });
    await stage.enqueue();
    expect((await stage.get("/admin/stats?queue=mine")).body.jobs.available).toBe(1);
    const { data, data_points } = (await stage.get("/admin/stats/history?period=1h")).body;
    expect(data_points).toEqual(data);
  });
});
