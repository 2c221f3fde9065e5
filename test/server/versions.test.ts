import { describe, expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

const TYPE = "invoice.generate";
const put = (stage: Stage, version: number | string) =>
  stage.post("/jobs", { type: TYPE, version, args: [version] });
const versionsIn = ({ body }: { body: { jobs: { version: unknown }[] } }) =>
  body.jobs.map(({ version }) => version);

describe("the version of a job", () => {
  it("may stand behind its type, also in batches, crons and steps; a field goes first", async () => {
    await using stage = await openStage();
    const named = { type: `${TYPE}@2.0`, args: [] };
    const one = await stage.post("/jobs", named);
    expect([one.status, one.body.job]).toMatchObject([201, { type: TYPE, version: "2.0" }]);
    const both = await stage.post("/jobs", { ...named, version: 3 });
    expect(both.body.job).toMatchObject({ type: TYPE, version: 3 });
    const many = await stage.post("/jobs/batch", { jobs: [{ type: `${TYPE}@4`, args: [] }] });
    expect(many.body.jobs).toMatchObject([{ type: TYPE, version: 4 }]);
    await stage.post("/cron", { name: "c", cron: "@daily", ...named });
    expect((await stage.post("/cron/c/trigger", {})).body.job).toMatchObject({ type: TYPE, version: "2.0" });
    const steps = [{ id: "a", ...named }];
    expect((await stage.post("/workflows", { steps })).status).toBe(201);
    expect((await stage.get(`/jobs?type=${TYPE}`)).body.jobs).toHaveLength(5);
    for (const type of [`${TYPE}@`, `${TYPE}@x`, `${TYPE}@0`, `${TYPE}@1.2.3.4`, `@2`, "curfew.webhook@1"])
      expect([type, (await stage.post("/jobs", { type, args: [] })).status]).toEqual([type, 400]);
  });

  it("names the schema that checks it", async () => {
    await using stage = await openStage();
    await stage.call("PUT", `/admin/schemas/${TYPE}/2.0`, { schema: { type: "array", maxItems: 1 } });
    const { status, body } = await stage.post("/jobs", { type: `${TYPE}@2.0`, args: [1, 2] });
    expect([status, body.error.code]).toEqual([422, "schema_validation"]);
  });
});

describe("the versions that a worker runs", () => {
  it("are a range, in a fetch or in the last heartbeat of the worker", async () => {
    await using stage = await openStage();
    for (const version of ["0.9", 1, "2.9.9", "3.0", 3]) await put(stage, version);
    const handlers = [{ type: TYPE, versions: ">=1.0 <3.0" }];
    await stage.post("/workers/heartbeat", { worker_id: "w1", handlers });
    const fetch = { queues: ["default"], count: 10 };
    expect(versionsIn(await stage.post("/workers/fetch", { ...fetch, worker_id: "w1" }))).toEqual([
      1,
      "2.9.9",
    ]);
    const newer = { ...fetch, worker_id: "w2", versions: { [TYPE]: ">=3" } };
    expect(versionsIn(await stage.post("/workers/fetch", newer))).toEqual(["3.0", 3]);
    const oldest = { ...fetch, handlers: [{ type: TYPE, versions: "0.9" }] };
    expect(versionsIn(await stage.post("/workers/fetch", oldest))).toEqual(["0.9"]);
  });

  it('are all with "*", and a fetch goes before a heartbeat', async () => {
    await using stage = await openStage();
    await put(stage, 1);
    await put(stage, 7);
    await stage.post("/workers/heartbeat", { worker_id: "w", handlers: [{ type: TYPE, versions: [1] }] });
    const fetch = { queues: ["default"], count: 10, worker_id: "w" };
    expect(versionsIn(await stage.post("/workers/fetch", fetch))).toEqual([1]);
    const all = { ...fetch, versions: { [TYPE]: "*" } };
    expect(versionsIn(await stage.post("/workers/fetch", all))).toEqual([7]);
  });

  it.each([
    ["handlers", { handlers: [{ type: TYPE, versions: "^1.0" }] }, "handlers.0.versions", '"^1.0"'],
    ["versions", { versions: { [TYPE]: "latest" } }, `versions.${TYPE}`, '"latest"'],
    ["both", { versions: {}, handlers: [] }, "handlers", "send one of them"],
  ])("that cannot be read are refused by name: %s", async (_what, said, field, value) => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/workers/fetch", { queues: ["default"], ...said });
    expect([status, body.error.details]).toEqual([400, { field }]);
    expect(body.error.message).toContain(value);
    if ("handlers" in said && !("versions" in said))
      expect((await stage.post("/workers/heartbeat", { worker_id: "w", ...said })).status).toBe(400);
  });
});

describe("a schema", () => {
  const schema = { type: "array", maxItems: 1 };

  it("is registered under the names of both extensions, which must not contradict each other", async () => {
    await using stage = await openStage();
    const path = `/admin/schemas/${TYPE}/2.0`;
    const made = await stage.call("PUT", path, { type: TYPE, version: "2.0", args_schema: schema });
    expect([made.status, made.body]).toMatchObject([201, { job_type: TYPE, version: "2.0", schema }]);
    expect(made.body.warnings).toBeUndefined();
    const other = await stage.post("/schemas", { job_type: "a.b", version: "1.0.0", schema });
    expect([other.status, other.body.type]).toEqual([201, "a.b"]);
    for (const [method, where, body, field] of [
      ["PUT", `/admin/schemas/${TYPE}/3.0`, { type: "other", schema }, "type"],
      ["PUT", `/admin/schemas/${TYPE}/3.0`, { version: "4.0", schema }, "version"],
      ["PUT", `/admin/schemas/${TYPE}/3.0`, { schema, args_schema: {} }, "args_schema"],
      ["POST", "/schemas", { version: 1, schema }, "type"],
      ["POST", "/schemas", { type: "a.b", job_type: "a.c", version: 2, schema }, "job_type"],
      ["PUT", "/schemas/a.b", { version: 3, schema }, "version"],
      ["PUT", "/schemas/a.b", {}, "schema"],
    ] as const) {
      const { status, body: said } = await stage.call(method, where, body);
      expect([where, status, said.error?.details]).toEqual([where, 400, { field }]);
    }
  });

  it("is published with its uri, which the same schema keeps", async () => {
    await using stage = await openStage();
    const made = await stage.call("PUT", "/schemas/a.b", { schema, uri: "urn:a:1" });
    expect([made.status, made.body.uri]).toEqual([201, "urn:a:1"]);
    expect((await stage.call("PUT", "/schemas/a.b", { schema, uri: "urn:a:1" })).status).toBe(200);
    const odd = await stage.call("PUT", "/schemas/a.b", { schema, uri: "urn:a:2" });
    expect([odd.status, odd.body.error.details]).toEqual([400, { field: "uri" }]);
  });
});
