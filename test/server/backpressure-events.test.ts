import { describe, expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

/** What engines record of a queue that comes to its bound. */
async function record({ engine }: Stage, name: string, waiting: number): Promise<void> {
  const event = {
    name,
    at: engine.now(),
    subject: "mail",
    queue: "mail",
    data: { waiting, most: 10, count: 3 },
  };
  await engine.store.commit([{ effects: [{ event }] }], { now: engine.now() });
}

const typesOf = ({ body }: { body: { events: { type: string }[] } }) => body.events.map(({ type }) => type);

describe("events of backpressure", () => {
  it("backpressure events come under both names, each with a stable id", async () => {
    await using stage = await openStage();
    await record(stage, "queue.pressure", 8);
    await record(stage, "queue.full", 10);
    await record(stage, "queue.relieved", 3);
    const answered = await stage.get("/events?types=queue.*,backpressure.*");
    expect(typesOf(answered)).toEqual([
      "queue.pressure",
      "backpressure.warning",
      "queue.full",
      "backpressure.rejected",
      "queue.relieved",
      "backpressure.cleared",
    ]);
    const { events } = answered.body;
    expect(events[3]).toMatchObject({
      subject: "mail",
      queue: "mail",
      data: { queue: "mail", depth: 10, bound: 10, count: 3 },
    });
    expect(new Set(events.map(({ id }: { id: string }) => id)).size).toBe(6);
    expect((await stage.get("/events?types=queue.*,backpressure.*")).body.events).toEqual(events);
  });

  it("are found by either name alone", async () => {
    await using stage = await openStage();
    await record(stage, "queue.full", 10);
    await record(stage, "queue.pressure", 8);
    expect(typesOf(await stage.get("/events?types=backpressure.rejected"))).toEqual([
      "backpressure.rejected",
    ]);
    expect(typesOf(await stage.get("/events?types=queue.full"))).toEqual(["queue.full"]);
    expect(typesOf(await stage.get("/events?types=backpressure.*"))).toEqual([
      "backpressure.rejected",
      "backpressure.warning",
    ]);
    expect(typesOf(await stage.get("/events?types=backpressure.odd"))).toEqual([]);
  });

  it("a dropped job has a backpressure event, and other discarded jobs have none", async () => {
    await using stage = await openStage();
    const backpressure = { max_depth: 1, strategy: "drop_oldest" };
    await stage.call("PUT", "/admin/queues/mail/config", { backpressure });
    const { id } = await stage.enqueue({ queue: "mail" });
    await stage.enqueue({ queue: "mail" });
    const failing = await stage.enqueue({ retry: { max_attempts: 1 } });
    await stage.fetch();
    await stage.post("/workers/nack", { job_id: failing.id, error: { code: "x" } });
    const { body } = await stage.get("/events?types=backpressure.dropped");
    expect(body.events).toMatchObject([{ subject: id, data: { queue: "mail", job_type: "test.job" } }]);
    expect(body.events).toHaveLength(1);
  });

  it("are recorded when a single job or a whole batch is refused", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/queues/mail/config", { backpressure: { max_depth: 1 } });
    const job = { type: "a", args: [], options: { queue: "mail" } };
    await stage.post("/jobs", job);
    expect((await stage.post("/jobs", job)).status).toBe(429);
    await stage.advance("2s");
    expect((await stage.post("/jobs/batch", { jobs: [job] })).status).toBe(429);
    await stage.advance("2s");
    const { body } = await stage.get("/events?types=backpressure.rejected");
    expect(body.events).toMatchObject([
      { type: "backpressure.rejected", queue: "mail", data: { depth: 1, bound: 1 } },
      { type: "backpressure.rejected", queue: "mail", data: { depth: 1, bound: 1 } },
    ]);
  });

  it("a batch that is refused whole is told like a single job", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/queues/mail/config", { backpressure: { max_depth: 2 } });
    const told: object[] = [];
    stage.engine.on("queue.full", (event) => told.push(event));
    const job = { type: "a", args: [], options: { queue: "mail" } };
    expect((await stage.post("/jobs/batch", { jobs: [job, job, job] })).status).toBe(429);
    expect(told).toMatchObject([{ queue: "mail", waiting: 0, most: 2 }]);
  });
});
