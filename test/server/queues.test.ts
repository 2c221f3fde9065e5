import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { faultyStore } from "../../src/testing/faulty-store.ts";
import { fits } from "./fits.ts";
import { openStage } from "./stage.ts";

/** Queues on the wire, in the shapes of the suites, the specification, the JavaScript client and the admin UI. */

describe("queues", () => {
  it("queues are listed with counts, by page, without internal queues", async () => {
    await using stage = await openStage();
    for (const queue of ["b", "a", "c", "a"]) await stage.enqueue({ queue });
    await stage.enqueue({ queue: "a", delay_until: "+PT1H" });
    await stage.post("/queues/d/pause");
    for (const path of ["/queues", "/admin/queues"]) {
      const answer = await stage.get(path);
      fits("GET", path, answer);
      const { body } = answer;
      expect(body.items).toEqual(body.queues);
      expect(body.items.map(({ name }: { name: string }) => name)).toEqual(["a", "b", "c", "d"]);
      expect(body.items[0]).toMatchObject({
        name: "a",
        status: "active",
        paused: false,
        depth: 3,
        counts: { available: 2, active: 0, scheduled: 1 },
      });
      expect(body.items[3]).toMatchObject({ status: "paused", paused: true, depth: 0 });
      expect(body.pagination).toMatchObject({ total: 4, page: 1, has_more: false });
      const second = await stage.get(`${path}?per_page=3&page=2`);
      expect(second.body.items).toHaveLength(1);
    }
  });

  it("every valid queue name can be read, even without jobs", async () => {
    await using stage = await openStage();
    await stage.enqueue({ queue: "a" });
    for (const path of ["/queues/a", "/admin/queues/a"]) {
      const answer = await stage.get(path);
      fits("GET", path.replace(/a$/, ":queue"), answer);
      expect(answer.body).toMatchObject({ name: "a", queue: { name: "a", counts: { available: 1 } } });
    }
    expect((await stage.get("/queues/nothing")).body.queue).toMatchObject({ name: "nothing", depth: 0 });
    const bad = await stage.get("/queues/NO_NAME");
    expect([bad.status, bad.body.error.message]).toEqual([400, expect.stringContaining("queue:")]);
  });

  it("a queue that is looked at again and again beside many jobs does not have all of them counted each time", async () => {
    let counted = 0;
    const delay = async () => {
      counted += 1;
      await new Promise<void>((resolve) => stage.test.system.after(1_000, resolve));
    };
    await using stage = await openStage({
      store: (clock) =>
        faultyStore(createMemoryStore({ clock }), (call) =>
          call === "inspect.live" ? { delay } : undefined,
        ),
    });
    const many = defineJob({ type: "many" });
    await stage.engine.enqueueMany(many, Array(10_000).fill(null), { queue: "q" });
    const depths: number[] = [];
    for (const path of ["/admin/queues/q", "/queues/q/stats", "/admin/queues/q", "/admin/queues/q/config"]) {
      const answer = stage.get(path);
      await stage.advance("1s");
      depths.push((await answer).body.depth);
    }
    expect(depths).toEqual([10_000, 10_000, 10_000, 10_000]);
    expect(counted).toBe(1);
  });

  it("queue stats count waiting and running jobs now, and recently ended jobs", async () => {
    await using stage = await openStage();
    for (let nth = 0; nth < 3; nth++) await stage.enqueue({ queue: "q" });
    await stage.enqueue({ queue: "other" });
    const { id, fence } = await stage.fetch({ queues: ["q"] });
    const stats = await stage.get("/queues/q/stats");
    fits("GET", "/queues/:queue/stats", stats);
    expect(stats.body).toMatchObject({
      queue: { name: "q", available: 2, active: 1, completed: 0 },
      stats: { queue: "q", depth: 2, active: 1 },
      available: 2,
      active: 1,
    });
    await stage.post("/workers/ack", { job_id: id, fence });
    const after = (await stage.get("/queues/q/stats")).body;
    expect(after.queue).toMatchObject({ available: 2, active: 0, completed: 1 });
    expect(after.throughput.processed_per_minute).toBe(0.2);
  });

  it.each(["/queues", "/admin/queues"])(
    "are paused and resumed under %s, and the audit has it",
    async (path) => {
      await using stage = await openStage();
      const paused = await stage.post(`${path}/q/pause`);
      fits("POST", `${path}/:queue/pause`, paused);
      expect(paused.body).toMatchObject({ name: "q", paused: true, status: "paused", queue: { name: "q" } });
      await stage.enqueue({ queue: "q" });
      expect(await stage.fetch({ queues: ["q"] })).toBeUndefined();
      expect((await stage.get(`${path}/q`)).body).toMatchObject({
        paused: true,
        paused_at: paused.body.paused_at,
      });
      const resumed = await stage.post(`${path}/q/resume`);
      fits("POST", `${path}/:queue/resume`, resumed);
      expect(resumed.body).toMatchObject({ paused: false, queue: { name: "q", paused: false } });
      expect(await stage.fetch({ queues: ["q"] })).toBeDefined();
      const { body } = await stage.get("/admin/audit?queue=q");
      expect(body.items.map(({ action }: { action: string }) => action)).toEqual([
        "queue.resume",
        "queue.pause",
      ]);
    },
  );
});
