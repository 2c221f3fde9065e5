import { describe, expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

async function fill(stage: Stage, jobs: Readonly<Record<string, number>>, options: object = {}) {
  for (const [queue, count] of Object.entries(jobs))
    for (let nth = 0; nth < count; nth++) await stage.enqueue({ queue, ...options });
}

async function fetchAll(stage: Stage, body: object) {
  const answer = await stage.post("/workers/fetch", { queues: ["a", "b", "c"], worker_id: "w", ...body });
  expect(answer.status).toBe(200);
  return answer.body.jobs as { id: string; queue: string }[];
}

/** The queues of jobs that are fetched one by one. */
async function oneByOne(stage: Stage, count: number, body: object): Promise<string> {
  let queues = "";
  for (let nth = 0; nth < count; nth++) queues += (await fetchAll(stage, body))[0]?.queue ?? "-";
  return queues;
}

const put = (stage: Stage, name: string, body: object) => stage.call("PUT", `/admin/pools/${name}`, body);
const counted = (jobs: readonly { queue: string }[]) =>
  jobs
    .map(({ queue }) => queue)
    .sort()
    .join("");

describe("pools of workers", () => {
  it("are stored, listed, changed and deleted, and the audit log names who did it", async () => {
    await using stage = await openStage();
    const body = { queues: ["a", "b"], strategy: "weighted", weights: { a: 2 }, concurrency: 20 };
    const made = await put(stage, "general", body);
    expect([made.status, made.body.pool]).toEqual([
      201,
      { name: "general", ...body, isolated: false, active_workers: 0, active_jobs: 0 },
    ]);
    const changed = await put(stage, "general", { queues: ["a"], isolated: true });
    expect([changed.status, changed.body.pool.strategy]).toEqual([200, "round-robin"]);
    const { items, pools } = (await stage.get("/admin/pools")).body;
    expect(items).toEqual([changed.body.pool]);
    expect(pools).toEqual(items);
    expect((await stage.get("/admin/pools/general")).body.pool).toEqual(changed.body.pool);
    expect((await stage.call("DELETE", "/admin/pools/general")).body.deleted).toBe(true);
    expect((await stage.call("DELETE", "/admin/pools/general")).status).toBe(404);
    expect((await stage.get("/admin/pools/general")).status).toBe(404);
    const audit = (await stage.get("/admin/audit")).body.items.map(
      ({ action }: { action: string }) => action,
    );
    expect(audit).toEqual(["pool.delete", "pool.put", "pool.put"]);
  });

  it("tell when a queue starves, when a pool is full, and when they share out in another way", async () => {
    await using stage = await openStage();
    await put(stage, "p", { queues: ["a", "b"], strategy: "strict", concurrency: 40 });
    await fill(stage, { a: 60, b: 3 });
    for (let seconds = 0; seconds < 35; seconds += 1) {
      await fetchAll(stage, { pool: "p" });
      await stage.advance("1s");
    }
    // Waiting jobs are counted every 5 s.
    await stage.advance("6s");
    await fetchAll(stage, { pool: "p", count: 10 });
    for (let again = 0; again < 3; again++) await fetchAll(stage, { pool: "p" });
    await put(stage, "p", { queues: ["a", "b"], strategy: "weighted", weights: { a: 2 }, concurrency: 40 });
    await put(stage, "p", { queues: ["b", "a"], strategy: "weighted", weights: { a: 2 }, concurrency: 50 });
    await stage.advance("2s");
    const { events } = (await stage.get("/events?types=scheduling.*&limit=50")).body;
    const told = events.map(({ type, data }: { type: string; data: object }) => ({ type, data }));
    expect(told).toEqual([
      {
        type: "scheduling.queue_starved",
        data: expect.objectContaining({ pool: "p", queue: "b", available_count: 3 }),
      },
      {
        type: "scheduling.pool_overloaded",
        data: expect.objectContaining({ pool: "p", active_jobs: 40, waiting_jobs: 23 }),
      },
      {
        type: "scheduling.rebalanced",
        data: expect.objectContaining({ pool: "p", previous_strategy: "strict", new_strategy: "weighted" }),
      },
    ]);
    expect(told[0].data.duration_ms).toBeGreaterThanOrEqual(30_000);
  });

  it("round-robin takes one job of each queue in turn, and skips an empty one", async () => {
    await using stage = await openStage();
    await put(stage, "p", { queues: ["a", "b", "c"] });
    await fill(stage, { a: 4, b: 2, c: 3 });
    expect(await oneByOne(stage, 10, { pool: "p" })).toBe("abcabcaca-");
  });

  it("weighted takes as many jobs of a queue in its turn as its weight", async () => {
    await using stage = await openStage();
    await put(stage, "p", { queues: ["a", "b"], strategy: "weighted", weights: { a: 3 } });
    await fill(stage, { a: 10, b: 10 });
    expect(await oneByOne(stage, 6, { pool: "p" })).toBe("aaabaa");
    // The turn goes on: one more of a, then b, and so on.
    expect(counted(await fetchAll(stage, { pool: "p", count: 6 }))).toBe("aaaabb");
  });

  it("strict takes the first queue that has jobs, and least-loaded the one with the most", async () => {
    await using stage = await openStage();
    await put(stage, "s", { queues: ["b", "a"], strategy: "strict" });
    await put(stage, "l", { queues: ["a", "b", "c"], strategy: "least-loaded" });
    await fill(stage, { a: 2, b: 2, c: 5 });
    expect(await oneByOne(stage, 3, { pool: "s" })).toBe("bba");
    expect(await oneByOne(stage, 2, { pool: "l" })).toBe("cc");
  });

  it("each queue gets its least share under strict, too", async () => {
    await using stage = await openStage();
    const starvation_prevention = { enabled: true, min_dispatch_ratio: 0.1 };
    await put(stage, "p", { queues: ["a", "b"], strategy: "strict", starvation_prevention });
    await fill(stage, { a: 40, b: 10 });
    const one = await oneByOne(stage, 20, { pool: "p" });
    expect(one.split("").filter((queue) => queue === "b").length).toBe(2);
    expect(counted(await fetchAll(stage, { pool: "p", count: 20 }))).toBe(`${"a".repeat(18)}bb`);
  });

  it("a worker gets jobs of its pool's queues only, and others none of an isolated pool", async () => {
    await using stage = await openStage();
    await put(stage, "paying", { queues: ["a"], isolated: true });
    await put(stage, "general", { queues: ["b"] });
    await fill(stage, { a: 2, b: 2 });
    expect(await oneByOne(stage, 2, {})).toBe("bb");
    expect(await oneByOne(stage, 1, { pool: "general" })).toBe("-");
    expect(await oneByOne(stage, 3, { pool: "paying" })).toBe("aa-");
  });

  it("its workers run no more jobs at once than its concurrency, also after timeouts", async () => {
    await using stage = await openStage();
    await put(stage, "p", { queues: ["a"], concurrency: 2 });
    await fill(stage, { a: 6 }, { timeout_ms: 1_000, retry: { max_attempts: 1 } });
    const [first] = await fetchAll(stage, { pool: "p", count: 5 });
    const { active_jobs, active_workers } = (await stage.get("/admin/pools/p")).body.pool;
    expect([active_jobs, active_workers]).toEqual([2, 1]);
    expect(await oneByOne(stage, 1, { pool: "p" })).toBe("-");
    await stage.post("/workers/ack", { job_id: first?.id });
    expect(await oneByOne(stage, 2, { pool: "p" })).toBe("a-");
    // Nobody reports on these two: the sweep ends them.
    await stage.advance("5s");
    expect((await fetchAll(stage, { pool: "p", count: 5 })).length).toBe(2);
  });

  it("a fetch without a pool may choose a strategy, and else takes queues in their order", async () => {
    await using stage = await openStage();
    await fill(stage, { a: 6, b: 6 });
    expect(counted(await fetchAll(stage, { count: 3 }))).toBe("aaa");
    expect(counted(await fetchAll(stage, { count: 4, strategy: "round-robin" }))).toBe("aabb");
    const weighted = { strategy: "weighted", weights: { b: 2 }, count: 3 };
    expect(counted(await fetchAll(stage, weighted))).toBe("abb");
  });

  it.each([
    [{ queues: [] }, "queues"],
    [{ queues: ["a", "a"] }, "queues"],
    [{ queues: ["curfew.webhooks"] }, "queues"],
    [{ queues: ["a"], strategy: "random" }, "strategy"],
    [{ queues: ["a"], weights: { a: 2 } }, "weights"],
    [{ queues: ["a"], strategy: "weighted", weights: { b: 2 } }, "weights"],
    [{ queues: ["a"], concurrency: 0 }, "concurrency"],
    [{ queues: ["a", "b"], starvation_prevention: { enabled: true, min_dispatch_ratio: 0.6 } }, "leastShare"],
  ])("refuses %j", async (body, field) => {
    await using stage = await openStage();
    const answer = await put(stage, "p", body);
    expect([400, 422]).toContain(answer.status);
    expect(JSON.stringify(answer.body)).toContain(field);
  });

  it("refuses a fetch for an unknown pool, or with weights of other queues", async () => {
    await using stage = await openStage();
    const unknown = await stage.post("/workers/fetch", { queues: ["a"], pool: "none" });
    expect([unknown.status, unknown.body.error.message]).toEqual([404, expect.stringContaining("none")]);
    const weights = await stage.post("/workers/fetch", { queues: ["a"], weights: { b: 2 } });
    expect([400, 422]).toContain(weights.status);
  });
});
