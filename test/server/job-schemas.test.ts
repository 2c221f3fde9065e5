import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { z } from "zod";
import { chain, defineJob, openEngine, silentLogger, step, unchecked } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { testFolder } from "../support/folders.ts";
import { openStage } from "./stage.ts";

const charge = {
  type: "array",
  prefixItems: [
    { type: "object", properties: { cents: { type: "integer", minimum: 1 } }, required: ["cents"] },
  ],
};
const rules = { validation: "always", compatibility: "backward" };

async function openSqlite(): Promise<string> {
  const folder = testFolder();
  return `sqlite:${join(folder, "jobs.db")}`;
}

async function openPostgres(): Promise<string> {
  const database = await createDatabase(inject("postgresUrl"));
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database.url;
}

describe("schemas over HTTP", () => {
  it("are registered, read, listed and deleted under both paths", async () => {
    await using stage = await openStage();
    const put = await stage.call("PUT", "/admin/schemas/card.charge/1", { schema: charge, ...rules });
    expect([put.status, put.body]).toMatchObject([
      201,
      { type: "card.charge", version: 1, validation: "always" },
    ]);
    expect((await stage.call("PUT", "/admin/schemas/card.charge/1", { schema: {} })).status).toBe(409);
    const wider = { ...charge, description: "wider" };
    const second = await stage.post("/schemas", {
      type: "card.charge",
      version: "1.2.0",
      schema: wider,
      uri: "urn:a:b",
    });
    expect([second.status, second.body.version]).toEqual([201, "1.2.0"]);
    expect((await stage.get("/admin/schemas/card.charge")).body).toMatchObject({
      version: "1.2.0",
      schema: wider,
    });
    for (const path of ["/schemas", "/admin/schemas"]) {
      expect((await stage.get(`${path}/card.charge/1`)).body).toMatchObject({ version: 1, schema: charge });
      expect((await stage.get(`${path}/card.charge/versions`)).body.versions).toEqual([1, "1.2.0"]);
      const checked = await stage.post(`${path}/card.charge/check`, { args: [{ cents: 0 }] });
      expect(checked.body).toMatchObject({ valid: false, reasons: ["args[0].cents: must be >= 1"] });
      const other = await stage.call("PUT", `${path}/other${path.replaceAll("/", ".")}`, { schema: charge });
      expect([other.status, other.body]).toMatchObject([201, { version: 1, ...rules }]);
      const { type } = other.body;
      await stage.call("PATCH", `${path}/${type}`, { validation: "named" });
      expect((await stage.call("PUT", `${path}/${type}/2`, { schema: {} })).body.validation).toBe("named");
      for (const version of [1, 2])
        expect((await stage.call("DELETE", `${path}/${type}/${version}`)).status).toBe(200);
    }
    expect((await stage.get(`/schemas/${encodeURIComponent("urn:a:b")}`)).body.version).toBe("1.2.0");
    expect((await stage.get("/schemas/card.charge")).body.version).toBe("1.2.0");
    for (const path of ["/schemas", "/admin/schemas"])
      expect((await stage.get(path)).body.schemas).toMatchObject([
        { type: "card.charge", versions: [1, "1.2.0"] },
      ]);
    expect((await stage.call("DELETE", `/schemas/${encodeURIComponent("urn:a:b")}`)).status).toBe(200);
    expect((await stage.call("DELETE", "/admin/schemas/card.charge/1")).status).toBe(200);
    for (const path of ["/admin/schemas/card.charge", "/admin/schemas/card.charge/1", "/schemas/urn%3Aa%3Ab"])
      expect([path, (await stage.get(path)).status]).toEqual([path, 404]);
    expect((await stage.call("DELETE", "/admin/schemas/card.charge/1")).status).toBe(404);
    const audited = (await stage.get("/admin/audit")).body.items as { action: string }[];
    expect(audited.map(({ action }) => action).filter((action) => action.startsWith("schema."))).toHaveLength(
      14,
    );
  });

  it("refuse jobs that do not fit, with the place: one, many, crons and steps", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/schemas/card.charge/1", { schema: charge, ...rules });
    const bad = { type: "card.charge", args: [{ cents: "5" }] };
    const good = { type: "card.charge", args: [{ cents: 5 }] };
    const one = await stage.post("/jobs", bad);
    expect([one.status, one.body.error]).toMatchObject([
      422,
      {
        code: "schema_validation",
        message: expect.stringContaining("args[0].cents: must be integer"),
        details: { field: "args[0].cents" },
      },
    ]);
    expect(one.body.error.message).not.toContain('"5"');
    const many = await stage.post("/jobs/batch", { jobs: [good, bad] });
    expect([many.status, many.body.error.details]).toMatchObject([422, { field: "jobs[1].args[0].cents" }]);
    const cron = await stage.post("/cron", { name: "c", cron: "0 3 * * *", ...bad });
    expect(cron.status).toBe(422);
    const workflow = await stage.post("/workflows", {
      steps: [
        { id: "a", ...good },
        { id: "b", ...bad, depends_on: ["a"] },
      ],
    });
    expect(workflow.status).toBe(422);
    expect((await stage.get("/jobs")).body.jobs).toEqual([]);
    expect((await stage.post("/jobs", good)).status).toBe(201);
    expect((await stage.post("/jobs", { type: "other", args: [{ cents: "5" }] })).status).toBe(201);
    expect((await stage.post("/jobs", { ...good, version: 7 })).body.error.message).toContain(
      "registered are 1",
    );
  });

  it("check only jobs that name a version or uri, unless the type says always", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/schemas/card.charge/1", { schema: charge });
    const bad = { type: "card.charge", args: ["no"] };
    expect((await stage.post("/jobs", bad)).status).toBe(201);
    expect((await stage.post("/jobs", { ...bad, version: 9 })).status).toBe(201);
    expect((await stage.post("/jobs", { ...bad, version: 1 })).status).toBe(422);
    expect((await stage.post("/jobs", { ...bad, schema: "urn:ojs:schema:card.charge:1" })).status).toBe(422);
    expect((await stage.call("PATCH", "/admin/schemas/card.charge", { validation: "always" })).status).toBe(
      200,
    );
    expect((await stage.post("/jobs", bad)).status).toBe(422);
  });

  it("name a version or uri that is not registered in a warning, and store the job", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/schemas/card.charge/1", { schema: charge });
    const job = { type: "card.charge", args: ["no"] };
    const fix = `registered for card.charge are 1: name one of them, register it, or set validation "always" to refuse such jobs`;
    const unchecked = (field: string, value: string) => ({
      code: "unknown_version",
      field,
      message: `${field}: ${value} is not registered, so its arguments were not checked; ${fix}`,
    });
    const one = await stage.post("/jobs", { ...job, version: 9, timout: 1 });
    expect([one.status, one.body.warnings.slice(1)]).toEqual([201, [unchecked("version", "9")]]);
    expect(one.headers.get("ojs-warning")).toMatch(/^timout: .* \| version: 9 is not registered/);
    const uri = await stage.post("/jobs", { ...job, schema: "urn:x:y" });
    expect(uri.body.warnings).toEqual([unchecked("schema", '"urn:x:y"')]);
    const many = await stage.post("/jobs/batch", { jobs: [job, { ...job, options: { version: "1.0" } }] });
    expect(many.body.warnings).toEqual([unchecked("jobs.1.version", '"1.0"')]);
    const cron = await stage.post("/cron", {
      name: "c",
      cron: "@daily",
      job_template: { ...job, version: 9 },
    });
    expect(cron.body.warnings).toEqual([unchecked("job_template.version", "9")]);
    const steps = [{ type: "group", jobs: [{ ...job, version: 9 }] }];
    const workflow = await stage.post("/workflows", { type: "chain", steps });
    expect(workflow.body.warnings).toEqual([unchecked("steps.0.jobs.0.version", "9")]);
    for (const fine of [job, { ...job, type: "other", version: 9 }])
      expect((await stage.post("/jobs", fine)).body.warnings).toBeUndefined();
    await stage.call("PATCH", "/admin/schemas/card.charge", { validation: "always" });
    const good = { type: "card.charge", args: [{ cents: 5 }] };
    expect((await stage.post("/jobs", { ...good, version: 9 })).status).toBe(422);
    const checked = await stage.post("/jobs", { ...good, schema: "urn:x:y" });
    expect(checked.body.warnings[0].message).toBe(
      'schema: "urn:x:y" is not registered, so version 1 checked it; registered for card.charge are 1: name one of them, or leave it out',
    );
  });

  it("refuse a version that breaks the compatibility, with the reasons, and say so before", async () => {
    await using stage = await openStage();
    await stage.call("PUT", "/admin/schemas/card.charge/1", { schema: charge, ...rules });
    const stricter = structuredClone(charge);
    stricter.prefixItems[0]?.required.push("currency");
    const checked = await stage.post("/admin/schemas/card.charge/check", { schema: stricter });
    expect(checked.body).toMatchObject({
      compatible: false,
      reasons: ["backward: args[0].currency: it is required now"],
    });
    const put = await stage.call("PUT", "/admin/schemas/card.charge/2", { schema: stricter });
    expect([put.status, put.body.error.code]).toEqual([409, "incompatible_schema"]);
    expect(put.body.error.message).toContain("args[0].currency: it is required now");
    expect(
      (await stage.call("PUT", "/admin/schemas/card.charge/2", { schema: stricter, compatibility: "none" }))
        .status,
    ).toBe(201);
    const args = (await stage.post("/admin/schemas/card.charge/check", { args: [{ cents: 0 }], version: 1 }))
      .body;
    expect(args).toMatchObject({ valid: false, reasons: ["args[0].cents: must be >= 1"] });
  });

  it("take no time with patterns that others choke on, and refuse those that cannot be bounded", async () => {
    await using stage = await openStage();
    const schema = { prefixItems: [{ type: "string", pattern: "^(a+)+$" }] };
    await stage.call("PUT", "/admin/schemas/evil.pattern/1", { schema, ...rules });
    const from = process.threadCpuUsage();
    const { status } = await stage.post("/jobs", { type: "evil.pattern", args: [`${"a".repeat(20_000)}!`] });
    expect(status).toBe(422);
    expect(process.threadCpuUsage(from).user / 1_000).toBeLessThan(1_500);
    for (const pattern of ["(a)\\1", "(?=a)b", "("])
      expect((await stage.call("PUT", "/admin/schemas/evil.other/1", { schema: { pattern } })).status).toBe(
        400,
      );
    const odd = {
      properties: { __proto__: { type: "string" }, constructor: { type: "string" } },
      required: ["toString"],
    };
    expect(
      (await stage.call("PUT", "/admin/schemas/odd.names/1", { schema: { prefixItems: [odd] }, ...rules }))
        .status,
    ).toBe(201);
    expect((await stage.post("/jobs", { type: "odd.names", args: [{}] })).status).toBe(422);
  });

  it("that have a keyword with a typo are taken, with a warning that names it", async () => {
    await using stage = await openStage();
    const schema = { prefixItems: [{ type: "object", requird: ["cents"] }] };
    const field = "schema.prefixItems[0].requird";
    for (const [method, path, body] of [
      ["PUT", "/admin/schemas/a.b/1", { schema }],
      ["POST", "/schemas", { type: "a.b", version: 2, schema }],
      ["PUT", "/schemas/a.c", { schema }],
    ] as const) {
      const said = await stage.call(method, path, body);
      expect([path, said.status, said.body.warnings]).toMatchObject([path, 201, [{ field }]]);
      expect(said.body.warnings[0].message).toContain("did you mean required?");
    }
    const fine = await stage.call("PUT", "/admin/schemas/a.d/1", { schema: charge });
    expect([fine.status, fine.body.warnings]).toEqual([201, undefined]);
  });

  it("need the right to operate for changes", async () => {
    await using stage = await openStage();
    for (const [method, path] of [
      ["PUT", "/admin/schemas/a/1"],
      ["PUT", "/admin/schemas/a/0"],
      ["PUT", "/admin/schemas/A B/1"],
    ] as const)
      expect((await stage.call(method, path, {})).status).toBe(400);
  });
});

describe.each([
  ["memory", () => Promise.resolve("memory:")],
  ["SQLite", openSqlite],
  ["PostgreSQL", openPostgres],
] as const)("schemas on %s", (_name, open) => {
  it("are published from definitions, hold for this engine at once and for another one after its next look", async () => {
    const store = await open();
    await using engine = await openEngine({ store, logger: silentLogger });
    const pay = defineJob({ type: "card.pay", payload: z.object({ cents: z.int().min(1) }) });
    const loose = defineJob({ type: "card.pay", payload: unchecked<unknown>() });
    expect(await engine.schemas.publish([pay])).toEqual([{ type: "card.pay", version: "1", isNew: true }]);
    expect(await engine.schemas.publish([pay])).toEqual([{ type: "card.pay", version: "1", isNew: false }]);
    await engine.enqueue(pay, { cents: 5 });
    await expect(engine.enqueue(loose, { cents: 0 })).rejects.toMatchObject({
      code: "schema_mismatch",
      field: "args[0].cents",
    });
    await expect(engine.enqueueMany(loose, [{ cents: 1 }, {}])).rejects.toMatchObject({
      field: "jobs[1].args[0]",
    });
    await expect(engine.workflows.start(chain([step(loose, { cents: 0 })]))).rejects.toThrow(
      /schema of card.pay/,
    );
    await expect(engine.crons.put("c", { cron: "0 3 * * *", job: loose, payload: {} })).rejects.toThrow(
      /cents/,
    );
    expect((await engine.queues.depth()).available).toBe(1);
    const wider = defineJob({
      type: "card.pay",
      payload: z.object({ cents: z.int().min(0), note: z.string().optional() }),
    });
    const narrow = defineJob({
      type: "card.pay",
      payload: z.object({ cents: z.int().min(0), to: z.string() }),
    });
    await expect(engine.schemas.publish([narrow])).rejects.toMatchObject({ code: "incompatible_schema" });
    const [second] = await engine.schemas.publish([wider], { compatibility: "none" });
    expect(second).toEqual({ type: "card.pay", version: "2", isNew: true });
    if (store !== "memory:") {
      await using other = await openEngine({ store, logger: silentLogger });
      await expect(other.enqueue(loose, { cents: -1 })).rejects.toMatchObject({ code: "schema_mismatch" });
      expect(await other.schemas.list()).toMatchObject([
        { type: "card.pay", versions: ["1", "2"], validation: "always" },
      ]);
    }
    await Promise.all([1, 2].map((version) => engine.schemas.remove("card.pay", version)));
    await engine.enqueue(loose, { cents: -1 });
    expect(await engine.schemas.get("card.pay")).toBeNull();
  });

  it("two engines that register the same version at once: one wins, and the other is refused", async () => {
    const store = await open();
    await using engine = await openEngine({ store, logger: silentLogger });
    const made = await Promise.allSettled(
      Array.from({ length: 6 }, (_, nth) => engine.schemas.put("race.type", 1, { maxItems: nth + 1 })),
    );
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const each of made)
      if (each.status === "rejected") expect(each.reason.code).toMatch(/known_schema|invalid_state/);
    expect((await engine.schemas.list())[0]?.versions).toEqual(["1"]);
  });
});
