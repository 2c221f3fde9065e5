import { describe, expect, it } from "vitest";
import { openStage } from "./stage.ts";

const job = (type: string, more: object = {}) => ({ type, args: [{ n: 1 }], ...more });

describe("workflows over HTTP", () => {
  it("a chain passes results on, and both reply shapes show its progress", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/workflows", {
      type: "chain",
      name: "two steps",
      steps: [job("first"), job("second")],
    });
    expect([status, body.workflow.state, body.workflow.steps_total, body.id]).toEqual([
      201,
      "running",
      2,
      body.workflow.id,
    ]);
    const first = await stage.fetch();
    await stage.post("/workers/ack", { job_id: first.id, result: { out: 7 } });
    await stage.advance("1s");
    const second = await stage.fetch();
    expect([second.type, second.parent_results, second.workflow_id]).toEqual([
      "second",
      [{ out: 7 }],
      body.id,
    ]);
    await stage.post("/workers/ack", { job_id: second.id });
    await stage.advance("1s");
    const { body: ended } = await stage.get(`/workflows/${body.id}`);
    expect([ended.workflow.state, ended.steps_completed, ended.metadata.completed_count]).toEqual([
      "completed",
      2,
      2,
    ]);
    const { body: jobs } = await stage.get(`/workflows/${body.id}/jobs`);
    expect(jobs.jobs.map(({ type }: { type: string }) => type)).toEqual(["first", "second"]);
  });

  it("workflows nest, and batches have callbacks", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/workflows", {
      type: "chain",
      steps: [
        { type: "batch", jobs: [job("a"), job("b")], callbacks: { on_complete: job("done") } },
        job("last"),
      ],
    });
    expect([status, body.workflow.jobs_total]).toEqual([201, 3]);
  });

  it.each([
    ["no steps", { type: "chain" }, "steps"],
    ["an empty list", { type: "group", jobs: [] }, "jobs"],
    ["an unknown kind", { type: "dag", jobs: [job("a")] }, "type"],
    [
      "an id of a step",
      { type: "chain", steps: [job("a", { id: "01989e2e-7cf5-7b8b-8b61-0d6a4a4e9f01" })] },
      "steps.0.id",
    ],
    ["a unique step", { type: "chain", steps: [job("a", { unique: { keys: ["type"] } })] }, "steps.0.unique"],
    [
      "callbacks of a group",
      { type: "group", jobs: [job("a")], callbacks: { on_success: job("b") } },
      "callbacks",
    ],
  ])("refuses %s, naming the field", async (_what, sent, field) => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/workflows", sent);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(field)]);
  });

  it("a workflow is cancelled once, with its jobs", async () => {
    await using stage = await openStage();
    const { body } = await stage.post("/workflows", { type: "group", jobs: [job("a"), job("b")] });
    expect((await stage.call("DELETE", `/workflows/${body.id}`)).body.workflow.state).toBe("cancelled");
    expect((await stage.call("DELETE", `/workflows/${body.id}`)).status).toBe(409);
    expect(await stage.fetch()).toBeUndefined();
    expect((await stage.get("/workflows/nothing")).status).toBe(404);
    const { body: listed } = await stage.get("/workflows");
    expect(listed.items.map(({ state }: { state: string }) => state)).toEqual(["cancelled"]);
  });
});
