import { describe, expect, it } from "vitest";
import { fits } from "./fits.ts";
import { openStage } from "./stage.ts";

const HEALTH = "/admin/observability/health";

describe("the health for monitors", () => {
  it("says healthy, degraded or unhealthy, with counts and codes", async () => {
    await using stage = await openStage();
    await stage.enqueue({ queue: "mail" });
    await stage.engine.queues.pause("bills");
    const alone = (await stage.get(HEALTH)).body;
    expect(alone).toMatchObject({
      status: "degraded",
      workers: { live: 0, silent: 0 },
      queues: { unattended: 1, paused: 1 },
    });
    expect(alone.findings).toContainEqual({ code: "queue_without_worker", level: "error" });
    await stage.post("/workers/heartbeat", { worker_id: "w-1" });
    const answered = await stage.get(HEALTH);
    fits("GET", HEALTH, answered);
    const doctor = (await stage.get("/admin/doctor")).body;
    expect(answered.body).toMatchObject({
      status: doctor.is_ok ? "healthy" : "degraded",
      checked_at: "2030-01-01T00:00:00.000Z",
      backend: { type: "memory", status: "healthy" },
      workers: { live: 1, silent: 0 },
      queues: { unattended: 0, paused: 1 },
    });
    expect(answered.body.findings).toEqual(
      doctor.findings.map(({ code, level }: { code: string; level: string }) => ({ code, level })),
    );
  });

  it("is 503 when the store does not answer", async () => {
    await using stage = await openStage();
    const { store } = stage.engine;
    const clock = store.clock.bind(store);
    store.clock = () => Promise.reject(new Error("no route to db-7.internal"));
    const answered = await stage.get(HEALTH);
    store.clock = clock;
    fits("GET", HEALTH, answered);
    expect([answered.status, answered.body.status]).toEqual([503, "unhealthy"]);
    expect(JSON.stringify(answered.body)).not.toContain("internal");
  });
});

describe("the trace of a job", () => {
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const meta = { traceparent: `00-${trace}-00f067aa0ba902b7-01` };
  const retry = { max_attempts: 2, initial_interval: "PT1S", jitter: false };
  const error = { code: "smtp_down", message: "secret text" };

  it("has a span for the enqueue and for each attempt", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ retry }, { meta });
    await stage.fetch();
    await stage.advance("2s");
    await stage.post("/workers/nack", { job_id: id, error });
    await stage.advance("1h");
    await stage.fetch({ worker_id: "w-2" });
    const running = (await stage.get(`/admin/jobs/${id}/trace`)).body;
    expect(running.spans.at(-1)).toMatchObject({ status: "running", ended_at: null, duration_ms: null });
    await stage.advance("3s");
    await stage.post("/workers/ack", { job_id: id });
    const answered = await stage.get(`/admin/jobs/${id}/trace`);
    fits("GET", "/admin/jobs/:id/trace", answered);
    const { body } = answered;
    expect(body).toMatchObject({ job_id: id, trace_id: trace, state: "completed", is_complete: true });
    const attempt = { name: "default process", kind: "CONSUMER" };
    expect(body.spans).toMatchObject([
      { name: "default enqueue", kind: "PRODUCER", started_at: "2030-01-01T00:00:00.000Z", duration_ms: 0 },
      {
        ...attempt,
        attempt: 1,
        status: "error",
        error_code: "smtp_down",
        worker_id: "w-1",
        duration_ms: 2_000,
      },
      { ...attempt, attempt: 2, status: "ok", worker_id: "w-2", duration_ms: 3_000 },
    ]);
    const types = body.events.map(({ type }: { type: string }) => type);
    expect([types[0], types.at(-1)]).toEqual(["job.enqueued", "job.completed"]);
    expect(JSON.stringify(body)).not.toContain("secret text");
  });

  it("shows attempts whose events are gone by their errors", async () => {
    await using stage = await openStage({ events: "off" });
    const { id } = await stage.enqueue({ retry }, { meta: { traceparent: "nonsense" } });
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: id, error });
    const { body } = await stage.get(`/admin/jobs/${id}/trace`);
    expect(body).toMatchObject({ trace_id: null, traceparent: null, events: [], is_complete: false });
    expect(body.spans[1]).toMatchObject({ attempt: 1, status: "error", started_at: null, duration_ms: null });
  });

  it("is a 404 for a job that is not there", async () => {
    await using stage = await openStage();
    for (const id of ["none", "00000000-0000-7000-8000-000000000000"])
      expect((await stage.get(`/admin/jobs/${id}/trace`)).status, id).toBe(404);
  });
});
