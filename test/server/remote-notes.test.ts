import { describe, expect, it } from "vitest";
import { openStage } from "./stage.ts";

describe("progress and checkpoints (8.2)", () => {
  it("progress never goes back within an attempt, and begins anew with the next", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ retry: { initial_interval: "PT1S", jitter: false } });
    await stage.fetch();
    const put = async (progress: number) =>
      (await stage.call("PUT", `/jobs/${id}/progress`, { progress, message: "hm" })).body.progress;
    expect([await put(0.5), await put(0.2), await put(7), await put(-1)]).toEqual([0.5, 0.5, 1, 1]);
    await stage.post("/workers/nack", { job_id: id, error: { message: "no" } });
    await stage.advance("1s");
    await stage.fetch();
    expect((await stage.get(`/jobs/${id}/progress`)).body.progress).toBeNull();
    const percent = await stage.post("/workers/progress", { job_id: id, percentage: 25 });
    expect(percent.body.progress).toBe(0.25);
  });

  it("a checkpoint reaches the next attempt", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue({ retry: { initial_interval: "PT1S", jitter: false } });
    const { fence } = await stage.fetch();
    const saved = await stage.call("PUT", `/jobs/${id}/checkpoint`, { state: { page: 3 }, fence });
    expect(saved.body).toMatchObject({ state: { page: 3 }, sequence: 1 });
    await stage.post("/workers/nack", { job_id: id, fence, error: { message: "no" } });
    await stage.advance("1s");
    expect((await stage.fetch()).checkpoint).toEqual({ state: { page: 3 }, sequence: 1 });
  });

  it("logs are kept with their attempt", async () => {
    await using stage = await openStage();
    const { id } = await stage.enqueue();
    const { fence } = await stage.fetch();
    await stage.post(`/jobs/${id}/logs`, {
      fence,
      lines: [{ message: "one" }, { message: "two", fields: { n: 2 } }],
    });
    const { body } = await stage.get(`/jobs/${id}/logs`);
    expect(body.lines).toMatchObject([
      { message: "one", attempt: 1 },
      { message: "two", attempt: 1, fields: { n: 2 } },
    ]);
  });
});
