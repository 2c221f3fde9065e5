import { describe, expect, it } from "vitest";
import { openStage } from "./stage.ts";

const ID = "0198a1b2-0000-7000-8000-00000000000f";
const fieldOf = ({ field }: { field: string }) => field;

describe("a field of a body", () => {
  it("is answered with a warning for a field that stands in options and belongs beside them", async () => {
    await using stage = await openStage();
    const job = { type: "a.b", args: [] };
    const cron = { name: "c", cron: "@daily", ...job };
    for (const [path, body, field] of [
      ["/jobs", { ...job, options: { id: ID } }, "options.id"],
      ["/jobs", { ...job, options: { args: [1] } }, "options.args"],
      ["/jobs/batch", { jobs: [{ ...job, options: { parent_id: ID } }] }, "jobs.0.options.parent_id"],
      ["/cron", { ...cron, options: { timezone: "Europe/Berlin" } }, "options.timezone"],
      [
        "/workflows",
        { type: "chain", steps: [job], options: { workflow_timeout: 5 } },
        "options.workflow_timeout",
      ],
    ] as const) {
      const { status, body: said } = await stage.post(path, body);
      const name = field.split(".").at(-1);
      const message = `${field}: it is not known and has no effect; did you mean ${name} beside options?`;
      expect([path, status, said.warnings]).toEqual([path, 201, [{ code: "unknown_field", field, message }]]);
    }
  });

  it("is answered with a warning if a fetch or a heartbeat does not know it", async () => {
    await using stage = await openStage();
    const fetch = { queues: ["a"], job_types: ["a.b"], limit: 5, x_region: "eu" };
    const fetched = await stage.post("/workers/fetch", fetch);
    expect([fetched.status, fetched.body.warnings.map(fieldOf)]).toEqual([200, ["job_types", "limit"]]);
    const beat = await stage.post("/workers/heartbeat", { worker_id: "w", pool: "x", labels: { zone: "a" } });
    expect([beat.status, beat.body.warnings.map(fieldOf)]).toEqual([200, ["pool"]]);
  });

  it("has no warning in the job of a cron, which keeps it", async () => {
    await using stage = await openStage();
    const job = { type: "a.b", args: [], version: 2, customer: "c", options: { region: "eu" } };
    const { body } = await stage.post("/cron", { name: "c", cron: "@daily", job_template: job });
    expect(body.warnings).toBeUndefined();
    const fired = (await stage.post("/cron/c/trigger", {})).body.job;
    expect(fired).toMatchObject({ version: 2, customer: "c", region: "eu" });
    const dropped = await stage.post("/cron", { name: "d", cron: "@daily", type: "a.b", customer: "c" });
    expect(dropped.body.warnings.map(fieldOf)).toEqual(["customer"]);
  });

  it("has no warning for metadata at the top level, which is read there", async () => {
    await using stage = await openStage();
    const { body } = await stage.post("/jobs", { type: "a.b", args: [], metadata: { a: 1 }, meta: { b: 2 } });
    expect([body.warnings, body.job.meta]).toEqual([undefined, { a: 1, b: 2 }]);
  });
});

describe("options", () => {
  it("beside the jobs of an inner workflow are refused: nothing reads them there", async () => {
    await using stage = await openStage();
    const jobs = [{ type: "a.b", args: [] }];
    const within = (inner: object) => ({
      type: "chain",
      steps: [{ type: "chain", steps: [{ type: "group", jobs, ...inner }] }],
    });
    const at = "steps.0.steps.0.";
    for (const [name, value] of Object.entries({
      queue: "mail",
      timeout: 5,
      total_timeout_ms: 5_000,
      priority: 5,
      retry: { max_attempts: 5 },
      scheduled_at: "2030-01-01T00:00:00Z",
      unique: { keys: ["type"] },
      tags: ["x"],
      rate_limit: { key: "x", concurrency: 1 },
      fair_key: "x",
      redact: ["payload"],
      pending: true,
      metadata: { a: 1 },
      version: 2,
    })) {
      const { status, body } = await stage.post("/workflows", within({ [name]: value }));
      expect([name, status, body.error?.details]).toEqual([name, 400, { field: `${at}${name}` }]);
      expect(body.error.message).toContain(`write ${at}options.${name} for all of its jobs`);
    }
    const timed = (await stage.post("/workflows", within({ workflow_timeout: 5 }))).body.error.message;
    expect(timed).toBe(
      `${at}workflow_timeout: 5 stands in an inner group; only the whole workflow has it: write it beside the outermost type`,
    );
    expect((await stage.post("/workflows", within({ retention: "P7D" }))).status).toBe(400);
    expect((await stage.get("/jobs")).body.jobs).toEqual([]);
    const named = await stage.post("/workflows", within({ name: "inner", timout: 5 }));
    const fields = named.body.warnings.map(fieldOf);
    expect([named.status, fields]).toEqual([201, [`${at}timout`, `${at}name`]]);
    expect(named.headers.get("ojs-warning")).toContain("an inner group keeps none");
    const called = await stage.post("/workflows", { type: "batch", jobs, on_success: jobs[0] });
    expect(called.body.warnings[0].message).toContain("did you mean callbacks.on_success?");
  });
});

describe("a refusal", () => {
  const cron = { name: "c", cron: "@daily", type: "a.b", args: [] };
  const job_template = { type: "a.b", args: [], parent_id: ID };
  const schema = (body: object) => ["PUT", "/schemas/a.b/1", { schema: body }] as const;

  it.each([
    [["POST", "/cron", { ...cron, options: { pending: true } }], "pending", "leave it out"],
    [["POST", "/cron", { ...cron, options: { fair_key: "x" } }], "options.fair_key", '"x": jobs of a cron'],
    [["POST", "/cron", { ...cron, options: { scheduled_at: "+PT9S" } }], "options.scheduled_at", '"+PT9S"'],
    [["POST", "/cron", { ...cron, options: { unique: {} } }], "options.unique", "overlap_policy"],
    [["POST", "/cron", { name: "c", cron: "@daily", job_template }], "job_template.parent_id", ID],
    [["POST", "/workflows", { type: "chain", steps: [{ type: "a.b", args: [] }], id: "x" }], "id", '"x"'],
    [schema({ properties: { a: { type: "foo" } } }), "schema.properties.a.type", '"foo"'],
    [schema({ pattern: "(?=a)" }), "schema", "`(?=`"],
    [["POST", "/schemas/a.b/check", {}], "schema", "args to check"],
    [["POST", "/jobs", "{"], "body", "send one JSON object"],
  ] as const)("of %j names %s and says what to do", async ([method, path, body], field, text) => {
    await using stage = await openStage();
    const { status, body: said } = await stage.call(method, path, body);
    expect([status, said.error.details.field]).toEqual([400, field]);
    expect(said.error.message).toContain(`${field}: `);
    expect(said.error.message).toContain(text);
  });

  it("of a type without schemas is a 404 with a hint", async () => {
    await using stage = await openStage();
    for (const [method, path, body] of [
      ["PATCH", "/schemas/a.b", { validation: "always" }],
      ["POST", "/schemas/a.b/check", { args: [] }],
    ] as const) {
      const { status, body: said } = await stage.call(method, path, body);
      expect([path, status, said.error.details.resource_id]).toEqual([path, 404, "a.b"]);
      expect(said.error.hint).toContain("GET /ojs/v1/admin/schemas");
    }
  });
});
