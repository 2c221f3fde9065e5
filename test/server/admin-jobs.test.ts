import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob } from "../../src/index.ts";
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

describe("search", () => {
  it("finds a job by its id and by the beginning of it", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    await stage.advance("1h");
    const other = await stage.enqueue();
    const exact = await stage.get(`/admin/jobs?search=${id}`);
    fits("GET", "/admin/jobs", exact);
    expect(idsOf(exact.body.items)).toEqual([id]);
    expect(exact.body).toMatchObject({ matched_by: "id", is_complete: true });
    expect(idsOf((await stage.get(`/admin/jobs?search=${id.slice(0, 13)}`)).body.items)).toEqual([id]);
    expect(idsOf((await stage.get(`/admin/jobs?search=${other.id.slice(0, 12)}`)).body.items)).toEqual([
      other.id,
    ]);
    const none = await stage.get("/admin/jobs?search=ffffffff-ffff-4fff");
    expect(none.body).toMatchObject({ items: [], matched_by: "payload", is_complete: true });
  });

  it("finds a text in payloads, with other filters, in bounded steps that go on by cursor", async () => {
    await using stage = await openStage();
    const needle = await stage.enqueue({ queue: "a" }, { args: [{ to: "Ärger & Co" }] });
    await stage.engine.enqueueMany(
      defineJob({ type: "hay", payload: z.object({ n: z.number() }) }),
      Array.from({ length: 10_500 }, (_, n) => ({ n })),
    );
    const text = encodeURIComponent("Ärger & Co");
    const first = await stage.get(`/admin/jobs?search=${text}`);
    fits("GET", "/admin/jobs", first);
    expect(first.body).toMatchObject({
      items: [],
      scanned: 10_000,
      is_complete: false,
      matched_by: "payload",
      pagination: { has_more: true },
    });
    const next = await stage.get(`/admin/jobs?search=${text}&cursor=${first.body.pagination.next_cursor}`);
    expect(idsOf(next.body.items)).toEqual([needle.id]);
    expect(next.body.is_complete).toBe(true);
    expect(idsOf((await stage.get(`/admin/jobs?search=${text}&order=asc`)).body.items)).toEqual([needle.id]);
    expect((await stage.get(`/admin/jobs?search=${text}&queue=b&order=asc`)).body.items).toEqual([]);
    expect((await stage.get("/admin/jobs?search=x")).status).toBe(400);
  });
});

describe("near misses", () => {
  async function complete(stage: Stage, after: "9s" | "1s", options: object): Promise<string> {
    const { id } = await stage.enqueue(options);
    const { fence } = await stage.fetch();
    await stage.advance(after);
    await stage.post("/workers/ack", { job_id: id, fence });
    return id;
  }

  it("lists completed jobs that used more than 80 % of a limit", async () => {
    await using stage = await openStage();
    const near = await complete(stage, "9s", { timeout: 10 });
    await complete(stage, "1s", { timeout: 10 });
    await complete(stage, "9s", {});
    const total = await complete(stage, "9s", { total_timeout: 10 });
    const listed = await stage.get("/admin/jobs/near-misses");
    fits("GET", "/admin/jobs/near-misses", listed);
    expect(listed.body).toMatchObject({
      items: [
        { kind: "total", late: false, job: { id: total } },
        { kind: "execution", used: 0.9, limit_ms: 10_000, late: false, job: { id: near } },
      ],
      is_complete: true,
    });
    const one = await stage.get("/admin/jobs/near-misses?limit=1");
    expect(one.body.items.map(({ job }: { job: { id: string } }) => job.id)).toEqual([total]);
    const next = await stage.get(`/admin/jobs/near-misses?limit=1&cursor=${one.body.pagination.next_cursor}`);
    expect(next.body.items.map(({ job }: { job: { id: string } }) => job.id)).toEqual([near]);
    expect((await stage.get("/admin/jobs/near-misses?queue=other")).body.items).toEqual([]);
  });
});

describe("fired timeouts", () => {
  it("are listed with kind and mode, the newest first, and followed by cursor", async () => {
    await using stage = await openStage();
    const late = await stage.enqueue({ timeout: 10, grace_period: 0, timeout_mode: "discard" });
    await stage.fetch();
    await stage.advance("20s");
    const unstarted = await stage.enqueue({ enqueue_ttl: 5, queue: "nobody" });
    await stage.advance("10s");
    const listed = await stage.get("/admin/timeouts-fired");
    fits("GET", "/admin/timeouts-fired", listed);
    expect(listed.body).toMatchObject({
      items: [
        { kind: "enqueue_ttl", job_id: unstarted.id, queue: "nobody", limit_ms: 5_000 },
        { kind: "execution", mode: "discard", job_id: late.id, attempt: 1, limit_ms: 10_000 },
      ],
      is_recording: true,
      is_complete: true,
    });
    const byKind = await stage.get("/admin/timeouts-fired?kind=execution");
    expect(byKind.body.items).toMatchObject([{ job_id: late.id }]);
    expect((await stage.get("/admin/timeouts-fired?mode=fail")).body.items).toMatchObject([
      { job_id: unstarted.id },
    ]);
    const second = await stage.get("/admin/timeouts-fired?per_page=1&page=2");
    fits("GET", "/admin/timeouts-fired", second);
    expect(second.body.items).toMatchObject([{ job_id: late.id }]);
    expect(second.body.pagination).toMatchObject({
      total: 2,
      total_is_exact: true,
      page: 2,
      has_more: false,
    });
    const first = await stage.get("/admin/timeouts-fired?per_page=1");
    expect(first.body.pagination).toMatchObject({ page: 1, has_more: true });
    const forward = await stage.get("/admin/timeouts-fired?cursor=0&limit=1");
    expect(forward.body.items).toMatchObject([{ job_id: late.id }]);
    expect((await stage.get("/admin/timeouts-fired?kind=odd")).status).toBe(400);
  });

  it("are looked for further back, where 5,000 newer events hide them", async () => {
    await using stage = await openStage();
    const fired = [];
    for (let nth = 0; nth < 3; nth++) {
      fired.unshift(await stage.enqueue({ enqueue_ttl: 5, queue: "nobody" }));
      await stage.advance("10s");
      const others = Array.from({ length: 1_000 }, () => ({ type: "test.other", args: [] }));
      for (let batch = 0; batch < 6; batch++) await stage.post("/jobs/batch", { jobs: others });
    }
    const newest = await stage.get("/admin/timeouts-fired");
    fits("GET", "/admin/timeouts-fired", newest);
    expect(newest.body).toMatchObject({ items: [], scanned: 5_000, is_complete: false });
    const all = await stage.get(`/admin/timeouts-fired?before=${newest.body.before}`);
    fits("GET", "/admin/timeouts-fired", all);
    expect(all.body).toMatchObject({
      items: fired.map(({ id }) => ({ job_id: id, kind: "enqueue_ttl" })),
      is_complete: true,
      before: null,
    });
    // Page by page, none is left out and none comes twice.
    const seen: string[] = [];
    let before: string | null = newest.body.before;
    while (before !== null) {
      const { body } = await stage.get(`/admin/timeouts-fired?per_page=1&before=${before}`);
      for (const { job_id } of body.items) seen.push(job_id);
      before = body.before;
    }
    expect(seen).toEqual(fired.map(({ id }) => id));
    expect((await stage.get("/admin/timeouts-fired?before=x")).status).toBe(400);
  });
});

describe("figures for the dashboard", () => {
  it("say how long the oldest job of each queue waits, from when it was due", async () => {
    await using stage = await openStage();
    const first = await stage.enqueue({ queue: "a" });
    await stage.enqueue({ queue: "b" }, { scheduled_at: "+PT30S" });
    await stage.advance("10s");
    await stage.enqueue({ queue: "a", priority: 50 });
    await stage.advance("50s");
    const stats = await stage.get("/admin/stats");
    fits("GET", "/admin/stats", stats);
    expect(stats.body.oldest_waits).toMatchObject([
      { queue: "a", job_id: first.id, wait_ms: 60_000 },
      { queue: "b", wait_ms: 30_000 },
    ]);
    expect(stats.body.oldest_waits_are_complete).toBe(true);
    expect((await stage.get("/admin/stats?queue=b")).body.oldest_waits).toMatchObject([{ queue: "b" }]);
  });

  it("count timeouts by kind and minute, and how late they fired", async () => {
    await using stage = await openStage();
    await stage.enqueue({ enqueue_ttl: 5, queue: "nobody" });
    await stage.advance("10s");
    const { body } = await stage.get("/admin/stats");
    expect(body.timeouts_per_minute).toMatchObject({ enqueue_ttl: 0.2, execution: 0 });
    const { counts, bounds_ms, total } = body.deadline_lateness;
    expect([total, counts.length]).toEqual([1, bounds_ms.length + 1]);
    const history = await stage.get("/admin/stats/history?period=1m");
    fits("GET", "/admin/stats/history", history);
    const fired = history.body.data.filter(
      ({ timeouts }: { timeouts: { enqueue_ttl: number } }) => timeouts.enqueue_ttl > 0,
    );
    expect(fired).toHaveLength(1);
  });
});
