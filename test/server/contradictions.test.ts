import { describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { openStage, type Stage } from "./stage.ts";

/** A job that has failed for good. */
async function deadLetter(stage: Stage, queue: string): Promise<string> {
  const { id } = await stage.enqueue({ queue, retry: { max_attempts: 1, on_exhaustion: "dead_letter" } });
  await stage.fetch({ queues: [queue] });
  await stage.post("/workers/nack", { job_id: id, error: { code: "x", message: "no" } });
  return id;
}

describe("a body", () => {
  it("may have its meta in the options, under either name", async () => {
    await using stage = await openStage();
    const options = { meta: { shop: "1", team: "a" }, metadata: { zone: "eu" } };
    const { body } = await stage.post("/jobs", { type: "a.b", args: [], meta: { team: "b" }, options });
    expect(body.job.meta).toEqual({ zone: "eu", shop: "1", team: "b" });
    const { key, hash } = createKey();
    await using tenants = await openStage({}, { keys: [{ name: "a", role: "admin", tenant: "a", hash }] });
    const other = { type: "a.b", args: [], options: { meta: { tenant_id: "b" } } };
    const said = await tenants.call("POST", "/jobs", other, { Authorization: `Bearer ${key}` });
    expect([said.status, said.body.error?.details?.field]).toEqual([400, "options.meta.tenant_id"]);
  });

  it("that contradicts itself is refused, and nothing is stored", async () => {
    await using stage = await openStage();
    const job = (more: object = {}) => ({ type: "a.b", args: [], ...more });
    const [at, later] = ["2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"];
    const cron = { name: "c", cron: "* * * * *" };
    for (const [path, body, field] of [
      ["/jobs", job({ scheduled_at: at, delay_until: later }), "delay_until"],
      ["/workflows", { type: "group", jobs: [job()], steps: [job()] }, "jobs"],
      ["/workflows", { type: "group", jobs: [job(), job({ depends_on: ["a"] })] }, "jobs.1.depends_on"],
      ["/workflows", { type: "chain", steps: [job({ depends_on: ["a"] })] }, "steps.0.depends_on"],
      [
        "/workflows",
        { type: "chain", steps: [{ type: "group", jobs: [job({ depends_on: ["a"] })] }] },
        "steps.0.jobs.0.depends_on",
      ],
      [
        "/workflows",
        { type: "chain", steps: [job()], workflow_timeout: 3, workflow_timeout_ms: 9_000 },
        "workflow_timeout_ms",
      ],
      ["/cron", { ...cron, ...job(), expression: "0 * * * *" }, "cron"],
      ["/cron", { ...cron, ...job(), job_template: { type: "x.y", args: [] } }, "type"],
      ["/cron", { ...cron, job_template: job(), options: { priority: 3 } }, "options"],
    ] as const) {
      const said = await stage.post(path, body);
      expect([path, said.status, said.body.error?.details?.field]).toEqual([path, 400, field]);
      expect(said.body.error.message).toMatch(/contradicts|only a graph/);
    }
    const lists = await Promise.all(["/jobs", "/workflows", "/cron"].map((path) => stage.get(path)));
    expect(lists.map(({ body }) => (body.jobs ?? body.workflows ?? body.crons).length)).toEqual([0, 0, 0]);
  });

  it("may say the same twice, as a reader that sends back what it read", async () => {
    await using stage = await openStage();
    const at = "2030-01-01T00:00:00Z";
    const job = { type: "a.b", args: [] };
    expect((await stage.post("/jobs", { ...job, scheduled_at: at, delay_until: at })).status).toBe(201);
    const timeouts = { workflow_timeout: 3, workflow_timeout_ms: 3_000 };
    const steps = [{ ...job, depends_on: [] }];
    expect((await stage.post("/workflows", { type: "chain", steps, ...timeouts })).status).toBe(201);
    const { body } = await stage.post("/cron", { name: "c", cron: "* * * * *", ...job, queue: "q" });
    expect((await stage.post("/cron", body.cron)).status).toBe(200);
  });

  it("with a step that waits for something, mistyped, is answered with a warning", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/workflows", {
      steps: [
        { id: "a", type: "a.b", args: [] },
        { id: "b", type: "a.b", args: [], depend_on: ["a"] },
      ],
    });
    expect([status, body.warnings?.map(({ field }: { field: string }) => field)]).toEqual([
      201,
      ["steps.1.depend_on"],
    ]);
  });

  it("deletes no dead letters by two filters that differ", async () => {
    await using stage = await openStage();
    const [mine, other] = [await deadLetter(stage, "mine"), await deadLetter(stage, "other")];
    for (const [path, body] of [
      ["/dead-letter?queue=mine", { queue: "other", confirm: true }],
      ["/admin/dead-letter?queue=mine", { filter: { queue: "other" }, confirm: true }],
      ["/dead-letter", { queue: "mine", filter: { queue: "other" }, confirm: true }],
      ["/dead-letter?queue=mine&confirm=true", { confirm: false }],
    ] as const) {
      const said = await stage.call("DELETE", path, body);
      expect([path, said.status, said.body.error?.message]).toEqual([
        path,
        400,
        expect.stringContaining("contradicts"),
      ]);
    }
    for (const id of [mine, other]) expect((await stage.job(id)).state).toBe("discarded");
    const { body } = await stage.call("DELETE", "/dead-letter?queue=mine", {
      type: "test.job",
      filter: { queue: "mine" },
      confirm: true,
    });
    expect([body.deleted, (await stage.job(other)).state]).toEqual([1, "discarded"]);
  });
});
