import { describe, expect, it } from "vitest";
import { fits } from "./fits.ts";
import { openStage, type Stage } from "./stage.ts";

/** What the dashboard asks about jobs beyond lists: run now, near misses, fired timeouts, search. */

const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id);

async function fail(stage: Stage, options: object = {}): Promise<string> {
  const { id } = await stage.enqueue({ queue: "failing", ...options });
  const { fence } = await stage.fetch({ queues: ["failing"] });
  await stage.post("/workers/nack", { job_id: id, fence, error: { type: "Broken", message: "no" } });
  return id;
}

describe("run now", () => {
  it("makes a scheduled job available at once, and the audit says by whom", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({}, { scheduled_at: "+PT1H" });
    expect((await stage.job(id)).state).toBe("scheduled");
    expect(await stage.fetch()).toBeUndefined();
    const ran = await stage.post(`/admin/jobs/${id}/run`, { reason: "customer waits" });
    fits("POST", "/admin/jobs/:id/run", ran);
    expect([ran.status, ran.body.state]).toEqual([200, "available"]);
    expect((await stage.fetch()).id).toBe(id);
    const { body } = await stage.get(`/admin/audit?job_id=${id}`);
    expect(body.items).toMatchObject([{ action: "job.run", actor: "local", reason: "customer waits" }]);
  });

  it("drops the backoff of a retryable job, and keeps its attempts", async () => {
    await using stage = await openStage();
    const id = await fail(stage, { retry: { max_attempts: 3, initial_interval: "PT1H", jitter: false } });
    expect((await stage.job(id)).state).toBe("retryable");
    expect((await stage.post(`/admin/jobs/${id}/run`)).body).toMatchObject({
      state: "available",
      attempt: 1,
    });
    expect((await stage.fetch({ queues: ["failing"] })).attempt).toBe(2);
  });

  it("keeps the deadline of the whole job", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ total_timeout: 60 }, { scheduled_at: "+PT30S" });
    const before = (await stage.get(`/admin/jobs/${id}`)).body;
    const after = (await stage.post(`/admin/jobs/${id}/run`)).body;
    expect(after.total_at).toBe(before.total_at);
    expect(after.total_at).not.toBeNull();
  });

  it("is refused for a job that waits already, runs or has ended", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    expect((await stage.post(`/admin/jobs/${id}/run`)).status).toBe(409);
    await stage.fetch();
    expect((await stage.post(`/admin/jobs/${id}/run`)).status).toBe(409);
    await stage.post(`/admin/jobs/${id}/cancel`);
    const refused = await stage.post(`/admin/jobs/${id}/run`);
    expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining("cancelled")]);
    expect((await stage.post("/admin/jobs/none/run")).status).toBe(404);
  });
});

describe("jobs for operators", () => {
  it("are filtered by whether they are dead letters", async () => {
    await using stage = await openStage();
    const dead = await fail(stage, { retry: { max_attempts: 1, on_exhaustion: "dead_letter" } });
    const other = await fail(stage, { retry: { max_attempts: 1 } });
    const listed = await stage.get("/admin/jobs?dead_letter=true");
    expect(idsOf(listed.body.items)).toEqual([dead]);
    const rest = await stage.get("/admin/jobs?state=discarded&dead_letter=false");
    expect(idsOf(rest.body.items)).toEqual([other]);
    expect((await stage.get("/admin/jobs?dead_letter=1")).status).toBe(400);
  });
});
