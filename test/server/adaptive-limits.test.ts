import { describe, expect, it } from "vitest";
import { adaptive, defineJob, processor } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";
import { openStage } from "./stage.ts";

const rule = { floor: "100ms", ceiling: "10s", samples: 20, step: 2 } as const;
const wire = { floor_ms: 100, ceiling_ms: 10_000, samples: 20, step: 2 };

describe("adaptive limits over HTTP (SEMANTICS 16.7)", () => {
  it("a remote producer and a remote worker learn like those of an engine", async () => {
    const { client, work, advance, load, sleep } = await openClientStage();
    const job = defineJob({ type: "quick", timeouts: { attempt: adaptive({ ...rule, every: "10m" }) } });
    work([processor(job, () => sleep(20))]);
    for (let count = 0; count < 30; count++) await client.enqueue(job);
    await advance("16m");
    const later = await client.enqueue(job);
    await advance("5s");
    const row = await load(later);
    expect(row.policy).toMatchObject({
      attempt: 5_000,
      adaptive: { learned: { runs: 30, previous: 10_000 } },
    });
    const explained = await client.explain(later.id, job);
    expect(explained.adaptive?.learned).toMatchObject({ limit: 5_000 });
    expect(String(explained)).toContain("adaptive, 3 × p99 within 100ms to 10s: 30 runs");
    const [advice] = await client.advise({ type: "quick", adaptive: rule });
    expect(advice?.adaptiveWhatIf?.runs).toBe(31);
  });

  it("a foreign worker's jobs get the rule of their queue, and replies show rule and limit", async () => {
    const stage = await openStage();
    const set = await stage.call("PUT", "/admin/queues/reports/config", {
      timeouts: { timeout_adaptive: wire },
    });
    expect(set.status).toBe(200);
    const config = await stage.get("/admin/queues/reports/config");
    expect(JSON.stringify(config.body)).toContain('"ceiling_ms":10000');
    await stage.post("/jobs", { type: "made", args: [], options: { queue: "reports" } });
    const fetched = await stage.post("/workers/fetch", { queues: ["reports"], worker_id: "w" });
    expect(fetched.body.jobs[0]).toMatchObject({ timeout_ms: 10_000, timeout_adaptive: wire });
  });

  it("an enqueue may name a rule; a wrong one is a 400 that names the field", async () => {
    const stage = await openStage();
    const made = await stage.post("/jobs", { type: "made", args: [], timeout_adaptive: wire });
    expect(made.status).toBe(201);
    expect(made.body.job).toMatchObject({ timeout_ms: 10_000, timeout_adaptive: wire });
    const refused = async (body: object) => {
      const { status, body: answer } = await stage.post("/jobs", { type: "made", args: [], ...body });
      return [status, JSON.stringify(answer)];
    };
    expect(await refused({ timeout_adaptive: { ...wire, floor_ms: 20_000 } })).toEqual([
      400,
      expect.stringContaining("floor"),
    ]);
    expect(await refused({ timeout_adaptive: wire, timeout_ms: 5 })).toEqual([
      400,
      expect.stringContaining("timeout_ms"),
    ]);
    expect(await refused({ timeout_adaptive: { ceiling_ms: 5 } })).toEqual([
      400,
      expect.stringContaining("floor_ms"),
    ]);
    expect(await refused({ timeout_adaptive: { ...wire, times: 1e9 } })).toEqual([
      400,
      expect.stringContaining("times"),
    ]);
    expect(await refused({ timeout_adaptive: { ...wire, often: 1 } })).toEqual([
      400,
      expect.stringContaining("often"),
    ]);
  });

  it("advise replays a rule, needs both bounds and a type, and says so", async () => {
    const stage = await openStage();
    const asked = async (query: string) => stage.get(`/admin/advise?${query}`);
    const bounds = "adaptive_floor_ms=100&adaptive_ceiling_ms=10000";
    const missing = await asked("type=made&adaptive_floor_ms=100");
    expect([missing.status, JSON.stringify(missing.body)]).toEqual([
      400,
      expect.stringContaining("adaptive_ceiling_ms"),
    ]);
    expect((await asked(bounds)).status).toBe(400);
    expect(await asked(`type=made&${bounds}`)).toMatchObject({ status: 200, body: { items: [] } });
    expect((await asked(`type=made&${bounds}&adaptive_times=0`)).status).toBe(400);
  });
});
