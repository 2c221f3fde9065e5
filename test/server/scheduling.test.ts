import { describe, expect, it } from "vitest";
import { fits } from "./fits.ts";
import { openStage } from "./stage.ts";

/** Fair queues on the wire: the config of a queue, keys of jobs, shares and stats. */

describe("fair scheduling", () => {
  it("takes jobs of each tenant in turn", async () => {
    await using stage = await openStage();
    const config = { tenant_fairness: { enabled: true, strategy: "fair-share", weights: { "tenant:b": 2 } } };
    const put = await stage.call("PUT", "/admin/queues/mail/config", config);
    fits("PUT", "/admin/queues/:queue/config", put);
    expect(put.body.configuration.fair).toEqual({
      by: "meta.tenant_id",
      strategy: "weighted",
      weights: { b: 2 },
    });
    for (const tenant of [..."aaaaaabbbb"])
      await stage.post("/jobs", {
        type: "test.job",
        args: [1],
        meta: { tenant_id: tenant },
        options: { queue: "mail" },
      });
    await stage.enqueue({ queue: "mail", fair_key: "c" });
    const { body } = await stage.post("/workers/fetch", { queues: ["mail"], count: 8, worker_id: "w" });
    const keys = body.jobs.map((job: { fair_key: string }) => job.fair_key);
    expect(body.jobs.length, JSON.stringify(body)).toBe(8);
    expect(keys.filter((key: string) => key === "a")).toHaveLength(3);
    expect(keys.filter((key: string) => key === "b")).toHaveLength(4);
    expect(keys.filter((key: string) => key === "c")).toHaveLength(1);
    const off = await stage.call("PUT", "/admin/queues/mail/config", { tenant_fairness: { enabled: false } });
    expect(off.body.configuration.fair).toBeUndefined();
  });

  it("shows starts by queue and the shares of fair queues", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/queues/mail/config", { fair: { weights: { a: 3 } } });
    for (const fair_key of [..."aab"]) await stage.enqueue({ queue: "mail", fair_key });
    const shares = await stage.get("/admin/queues/mail/shares");
    fits("GET", "/admin/queues/:queue/shares", shares);
    expect(shares.body).toMatchObject({
      queue: "mail",
      fair: true,
      items: [
        { key: "a", weight: 3, share: 0.75, waiting: 2 },
        { key: "b", weight: 1, share: 0.25, waiting: 1 },
      ],
      has_more: false,
    });
    const stats = await stage.get("/admin/scheduling/stats");
    fits("GET", "/admin/scheduling/stats", stats);
    expect(stats.body.stats.fair_queues).toMatchObject([
      { queue: "mail", items: [{ key: "a" }, { key: "b" }] },
    ]);
    expect(stats.body.stats.window).toBe("PT5M");
  });

  it("refuses what it cannot keep", async () => {
    await using stage = await openStage();
    for (const config of [
      { fair: { by: "payload.x" } },
      { fair: { weights: { a: 0 } } },
      { fair: { strategy: "least-loaded" } },
      { fair: {}, tenant_fairness: {} },
    ])
      expect((await stage.call("PUT", "/admin/queues/mail/config", config)).status).toBe(400);
    expect((await stage.post("/jobs", { type: "test.job", args: [], fair_key: "" })).status).toBe(400);
    expect(
      (await stage.post("/jobs", { type: "test.job", args: [], fair_key: "x".repeat(256) })).status,
    ).toBe(400);
  });
});
