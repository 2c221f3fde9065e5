import { describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { fits } from "./fits.ts";
import { openStage, type Stage } from "./stage.ts";

const POLICY = { max_attempts: 1, on_exhaustion: "dead_letter", non_retryable_errors: ["Fatal"] };

async function deadLetter(stage: Stage, meta: object = { source: "web" }): Promise<string> {
  const { id } = await stage.enqueue({ retry: POLICY, priority: -5 }, { meta });
  await stage.fetch();
  await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
  return id;
}

describe("a retry with changes", () => {
  it.each(["/dead-letter", "/admin/dead-letter", "/jobs"])(
    "under %s replaces what is named and keeps the rest",
    async (path) => {
      await using stage = await openStage();
      const id = await deadLetter(stage);
      const override = { meta: { by: "ann" }, retry: { max_attempts: 2 }, priority: 7 };
      const again = await stage.post(`${path}/${id}/retry`, { override });
      fits("POST", `${path}/:id/retry`, again);
      expect(again.status).toBe(200);
      expect(await stage.job(id)).toMatchObject({
        id,
        state: "available",
        attempt: 0,
        priority: 7,
        meta: { source: "web", by: "ann" },
        retry: { max_attempts: 2, on_exhaustion: "dead_letter", non_retryable_errors: ["Fatal"] },
      });
      // The changed policy holds: the first failure is retried, the second one is a dead letter again.
      for (const state of ["retryable", "discarded"]) {
        await stage.advance("10m");
        await stage.fetch();
        const { body } = await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
        expect(body.state).toBe(state);
      }
      expect((await stage.get("/dead-letter")).body.jobs).toMatchObject([{ id, errors: [{}, {}, {}] }]);
      const { items } = (await stage.get("/admin/audit?action=job.retry")).body;
      expect(items).toMatchObject([{ details: { changes: { meta: { by: "ann" }, priority: 7 } } }]);
    },
  );

  it("of many changes each of them", async () => {
    await using stage = await openStage();
    const ids = [await deadLetter(stage), await deadLetter(stage)];
    const { body } = await stage.post("/dead-letter/retry", {
      filter: { queue: "default" },
      override: { meta: { run: 2 } },
      confirm: true,
    });
    expect(body.retried).toBe(2);
    for (const id of ids) expect((await stage.job(id)).meta).toEqual({ source: "web", run: 2 });
  });

  it("says when the job was enqueued again", async () => {
    await using stage = await openStage();
    const id = await deadLetter(stage);
    await stage.advance("1h");
    const { body } = await stage.post(`/dead-letter/${id}/retry`);
    expect(body.re_enqueued_at).toBe(new Date(stage.engine.now()).toISOString());
  });

  it.each([
    [{ queue: "other" }, "override.queue"],
    [{ args: [2] }, "override.args"],
    [{ type: "a.b" }, "override.type"],
    [{ retries: 2 }, "override.retries"],
  ])("to %j is a 422 that names it, and nothing is retried", async (override, field) => {
    await using stage = await openStage();
    const id = await deadLetter(stage);
    for (const path of ["/dead-letter", "/admin/jobs"]) {
      const { status, body } = await stage.post(`${path}/${id}/retry`, { override });
      expect([status, body.error.code, body.error.details.field]).toEqual([422, "unsupported", field]);
    }
    expect((await stage.job(id)).state).toBe("discarded");
  });

  it("refuses values that no job can have, with their place", async () => {
    await using stage = await openStage();
    const id = await deadLetter(stage);
    const send = async (override: object) => {
      const { status, body } = await stage.post(`/dead-letter/${id}/retry`, { override });
      return `${status} ${body.error.message}`;
    };
    expect(await send({ priority: 101 })).toMatch(/^400 override\.priority/);
    expect(await send({ retry: { max_attempts: -1 } })).toMatch(/^4\d\d .*max_attempts/);
    expect(await send({ meta: { text: "x".repeat(5_000) } })).toMatch(/^4\d\d .*meta/);
    expect(await send({ meta: [] })).toMatch(/^400 override\.meta/);
    expect((await stage.job(id)).state).toBe("discarded");
  });

  it("cannot name another tenant", async () => {
    const key = createKey();
    await using stage = await openStage(
      {},
      { keys: [{ name: "a", role: "admin", tenant: "a", hash: key.hash }] },
    );
    const as = { Authorization: `Bearer ${key.key}` };
    const made = await stage.call("POST", "/jobs", { type: "a.b", args: [], options: { retry: POLICY } }, as);
    const { id } = made.body.job;
    await stage.call("POST", "/workers/fetch", { queues: ["default"], worker_id: "w-1" }, as);
    await stage.call("POST", "/workers/nack", { job_id: id, error: { message: "no" } }, as);
    const retry = (tenant_id: string) =>
      stage.call("POST", `/dead-letter/${id}/retry`, { override: { meta: { tenant_id } } }, as);
    expect((await retry("b")).status).toBe(400);
    expect((await retry("a")).body.job).toMatchObject({ state: "available", meta: { tenant_id: "a" } });
  });
});
