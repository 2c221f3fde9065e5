import { describe, expect, it } from "vitest";
import { openStage } from "./stage.ts";

const minutely = {
  name: "tick",
  expression: "* * * * *",
  timezone: "Europe/Berlin",
  overlap_policy: "skip",
  job_template: { type: "tick.tock", args: [{ n: 1 }], options: { queue: "default" } },
};

describe("crons over HTTP", () => {
  it("fires in both spellings, and says when it will", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/cron", minutely);
    expect([status, body.cron.enabled, body.cron_job.timezone, body.cron.overlap_policy]).toEqual([
      201,
      true,
      "Europe/Berlin",
      "skip",
    ]);
    await stage.advance("61s");
    expect((await stage.fetch()).type).toBe("tick.tock");
    const flat = { name: "flat", cron: "@hourly", type: "flat.job", args: [1, 2] };
    expect((await stage.post("/cron", flat)).body.cron.args).toEqual([1, 2]);
    expect((await stage.post("/cron", { ...flat, cron: "@daily" })).status).toBe(200);
    const { body: listed } = await stage.get("/crons");
    expect(listed.crons.map(({ name }: { name: string }) => name)).toEqual(["flat", "tick"]);
  });

  it("pauses, resumes, fires by hand and shows what it did", async () => {
    await using stage = await openStage();
    await stage.post("/cron", minutely);
    expect((await stage.call("PATCH", "/crons/tick", { enabled: false })).body.cron.next_run_at).toBeNull();
    await stage.advance("5m");
    expect(await stage.fetch()).toBeUndefined();
    expect((await stage.post("/cron/tick/trigger")).body.job.type).toBe("tick.tock");
    expect((await stage.post("/cron/tick/resume")).body.cron.enabled).toBe(true);
    const { body } = await stage.get("/cron/tick/history");
    expect(body.runs).toMatchObject([{ manual: true, job_id: expect.any(String) }]);
    expect((await stage.call("DELETE", "/cron/tick")).body).toMatchObject({
      deleted: true,
      cron: { name: "tick" },
    });
    expect((await stage.call("DELETE", "/cron/tick")).status).toBe(404);
  });

  it.each([
    ["an expression that is none", { ...minutely, expression: "61 * * * *" }],
    ["a zone that is none", { ...minutely, timezone: "Mars/Base" }],
    ["no expression", { name: "x", job_template: minutely.job_template }],
    ["no job", { name: "x", expression: "@daily" }],
    ["a unique job", { ...minutely, job_template: { ...minutely.job_template, unique: { keys: ["type"] } } }],
  ])("refuses %s", async (_what, sent) => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/cron", sent);
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(/.+/)]);
  });
});

describe("unique jobs over HTTP", () => {
  const unique = (on_conflict: string) => ({
    type: "a",
    args: [{ id: 1 }],
    unique: { keys: ["type", "args"], on_conflict },
  });

  it("answers a second one as its rule says", async () => {
    await using stage = await openStage();
    const { body: first } = await stage.post("/jobs", unique("reject"));
    const rejected = await stage.post("/jobs", unique("reject"));
    expect([rejected.status, rejected.body.error.details.existing_job_id]).toEqual([409, first.job.id]);
    const ignored = await stage.post("/jobs", unique("ignore"));
    expect([ignored.status, ignored.body.job.id]).toEqual([200, first.job.id]);
    expect((await stage.post("/jobs", { ...unique("reject"), args: [{ id: 2 }] })).status).toBe(201);
  });

  it("debounces and throttles, also in a batch", async () => {
    await using stage = await openStage();
    const debounced = (id: number, text: string) => ({
      type: "d",
      args: [{ customer: { id }, text }],
      unique: { args_paths: [["customer", "id"]], debounce: { quiet: "2s", max_wait: 60 } },
    });
    const { status, body: first } = await stage.post("/jobs", debounced(1, "a"));
    expect([status, first.job.state]).toEqual([201, "scheduled"]);
    const batch = await stage.post("/jobs/batch", {
      jobs: [debounced(1, "b"), debounced(2, "c"), debounced(1, "d")],
    });
    expect(batch.status).toBe(201);
    const [b, c, d] = batch.body.jobs;
    expect([b.id, c.id === d.id, d.args[0].text]).toEqual([d.id, false, "d"]);
    const replaced = await stage.get(`/jobs/${first.job.id}`);
    expect(replaced.body.job.state).toBe("cancelled");
    const both = { ...debounced(1, "a").unique, throttle: "1m" };
    const refused = await stage.post("/jobs", { ...debounced(1, "a"), unique: both });
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining("throttle")]);
  });

  it("a batch cannot be rejected in part", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/jobs/batch", {
      jobs: [{ type: "b", args: [] }, unique("reject")],
    });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("jobs.1.unique")]);
    expect(await stage.fetch()).toBeUndefined();
  });
});
