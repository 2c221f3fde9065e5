import { describe, expect, it, vi } from "vitest";
import { fits } from "./fits.ts";
import { openStage, type Stage } from "./stage.ts";

interface Fetched {
  readonly id: string;
  readonly fence: number;
}

async function started(stage: Stage, count: number, options: object = {}): Promise<Fetched[]> {
  const jobs = Array.from({ length: count }, (_, index) => ({ type: "test.job", args: [index], options }));
  await stage.post("/jobs/batch", { jobs });
  const { body } = await stage.post("/workers/fetch", { queues: ["default"], count, worker_id: "w-1" });
  expect(body.jobs).toHaveLength(count);
  return body.jobs;
}

const reportOn = ({ id, fence }: Fetched) => ({ job_id: id, fence });

describe("reports on many jobs", () => {
  it("acknowledges each, in order, and costs one commit", async () => {
    await using stage = await openStage();
    const jobs = await started(stage, 100);
    const commit = vi.spyOn(stage.engine.store, "commit");
    const answered = await stage.post("/workers/ack/batch", {
      worker_id: "w-1",
      jobs: jobs.map((job, index) => ({ ...reportOn(job), result: { index } })),
    });
    const { body } = answered;
    expect([body.count, body.refused]).toEqual([100, 0]);
    expect(body.results.map(({ job_id }: { job_id: string }) => job_id)).toEqual(jobs.map(({ id }) => id));
    fits("POST", "/workers/ack/batch", answered);
    expect(commit).toHaveBeenCalledTimes(1);
    const last = await stage.job(jobs[99]?.id as string);
    expect([last.state, last.result]).toEqual(["completed", { index: 99 }]);
  });

  it("loads no row that this server handed out, and small ones of other servers by one call", async () => {
    await using stage = await openStage();
    const load = vi.spyOn(stage.engine.store.jobs, "load");
    const own = await started(stage, 100);
    load.mockClear();
    await stage.post("/workers/ack/batch", { jobs: own.map(reportOn) });
    expect(load).not.toHaveBeenCalled();
    const jobs: Fetched[] = [];
    for (let times = 0; times < 5; times++) jobs.push(...(await started(stage, 100)));
    for (const { id } of jobs) stage.engine.service.forget(id);
    load.mockClear();
    const { body } = await stage.post("/workers/ack/batch", { jobs: jobs.map(reportOn) });
    expect([body.count, body.refused, load.mock.calls.length]).toEqual([500, 0, 1]);
  });

  it("decides on large rows of other servers in parts, and loads those that the sender does not hold briefly", async () => {
    await using stage = await openStage();
    const text = "x".repeat(900_000);
    for (let index = 0; index < 12; index++) await stage.enqueue({}, { args: [text] });
    const { body: fetched } = await stage.post("/workers/fetch", { queues: ["default"], count: 12 });
    for (const { id } of fetched.jobs) stage.engine.service.forget(id);
    const jobs = stage.engine.store.jobs;
    const whole: number[] = [];
    const load = jobs.load.bind(jobs);
    vi.spyOn(jobs, "load").mockImplementation(async (ids, options) => {
      const rows = await load(ids, options);
      whole.push(rows.filter((row) => row?.payload.includes(text)).length);
      return rows;
    });
    const ack = (fence: number) =>
      stage.post("/workers/ack/batch", {
        jobs: fetched.jobs.map((job: Fetched) => ({ job_id: job.id, fence: job.fence + fence })),
      });
    expect((await ack(1)).body.refused).toBe(12);
    expect(whole.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(5);
    expect((await ack(0)).body.refused).toBe(0);
    expect(Math.max(...whole)).toBeLessThanOrEqual(5);
  });

  it("a refused report of a batch does not affect the others", async () => {
    await using stage = await openStage();
    const [good, late, large] = (await started(stage, 3)) as [Fetched, Fetched, Fetched];
    await stage.post(`/jobs/${late.id}/cancel`);
    const missing = "0198a1b2-0000-7000-8000-00000000000f";
    const answered = await stage.post("/workers/ack/batch", {
      jobs: [
        { ...reportOn(late), result: 1 },
        { job_id: missing },
        { job_id: "no id" },
        { ...reportOn(large), result: "x".repeat(1_100_000) },
        { ...reportOn(good), result: 2 },
      ],
    });
    const { body } = answered;
    expect([body.count, body.refused]).toEqual([5, 4]);
    expect(body.results).toMatchObject([
      { job_id: late.id, status: 409, error: { code: "conflict", details: { state: "cancelled" } } },
      { job_id: missing, status: 404, error: { code: "not_found" } },
      { job_id: "no id", status: 404, error: { code: "not_found" } },
      { job_id: large.id, status: 413, error: { code: "payload_too_large" } },
      { job_id: good.id, status: 200, state: "completed" },
    ]);
    fits("POST", "/workers/ack/batch", answered);
    expect((await stage.job(large.id)).state).toBe("active");
  });

  it("answers a repeated report as the first time, also within one request", async () => {
    await using stage = await openStage();
    const jobs = await started(stage, 2);
    const reports = { jobs: jobs.map(reportOn) };
    await stage.post("/workers/ack/batch", reports);
    const again = await stage.post("/workers/ack/batch", reports);
    expect(again.body.results.map(({ state }: { state: string }) => state)).toEqual([
      "completed",
      "completed",
    ]);
    const [twice] = (await started(stage, 1)) as [Fetched];
    const { body } = await stage.post("/workers/ack/batch", { jobs: [reportOn(twice), reportOn(twice)] });
    expect(body.results.map(({ status }: { status: number }) => status)).toEqual([200, 200]);
    expect(stage.engine.counters().completed).toBe(3);
  });

  it("a batch of nacks takes failures, requeues and snoozes", async () => {
    await using stage = await openStage();
    const [failed, returned, snoozed] = (await started(stage, 3)) as [Fetched, Fetched, Fetched];
    const { body } = await stage.post("/workers/nack/batch", {
      worker_id: "w-1",
      jobs: [
        { ...reportOn(failed), error: { code: "x", message: "no" } },
        { ...reportOn(returned), requeue: true },
        { ...reportOn(snoozed), snooze_until: "+PT1M" },
      ],
    });
    expect(body.results).toMatchObject([
      { state: "retryable", attempt: 1, next_attempt_at: expect.any(String) },
      { state: "available" },
      { state: "scheduled" },
    ]);
    expect((await stage.job(failed.id)).error).toMatchObject({ code: "x", message: "no" });
  });

  it("worker_id of the batch holds for reports without their own", async () => {
    await using stage = await openStage();
    const [job] = (await started(stage, 1)) as [Fetched];
    const report = { worker_id: "somebody", jobs: [{ job_id: job.id }] };
    expect((await stage.post("/workers/ack/batch", report)).body.results[0].status).toBe(409);
    const own = { worker_id: "somebody", jobs: [{ job_id: job.id, worker_id: "w-1" }] };
    expect((await stage.post("/workers/ack/batch", own)).body.results[0].status).toBe(200);
  });

  it("an invalid batch is refused as a whole", async () => {
    await using stage = await openStage();
    const [job] = (await started(stage, 1)) as [Fetched];
    const { status, body } = await stage.post("/workers/ack/batch", { jobs: [reportOn(job), { fence: 1 }] });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("jobs.1.job_id")]);
    expect((await stage.job(job.id)).state).toBe("active");
    for (const jobs of [[], Array.from({ length: 1_001 }, () => reportOn(job)), "all"])
      expect((await stage.post("/workers/nack/batch", { jobs })).status).toBe(400);
  });

  it("a failing store gives each report a retryable error", async () => {
    await using stage = await openStage();
    const jobs = await started(stage, 2);
    const commit = vi.spyOn(stage.engine.store, "commit").mockRejectedValue(new Error("away"));
    const reply = stage.post("/workers/ack/batch", { jobs: jobs.map(reportOn) });
    await stage.advance("11s");
    const { status, body } = await reply;
    expect(status).toBe(200);
    expect(body.results).toMatchObject([
      { status: 503, error: { code: "backend_error", retryable: true } },
      { status: 503, error: { retryable: true } },
    ]);
    commit.mockRestore();
  });
});
