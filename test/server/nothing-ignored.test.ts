import { describe, expect, it } from "vitest";
import { z } from "zod";
import { openClient } from "../../src/client/index.ts";
import { defineJob } from "../../src/index.ts";
import { EITHER, queryNames } from "../../src/server/http/query-names.ts";
import { ROUTES } from "../../src/server/routes/all.ts";
import { fakeSender } from "../engine/webhook-stage.ts";
import { bodyOf, make, pathOf } from "./route-matrix.ts";
import { openStage, type Stage } from "./stage.ts";

const ID = "0198a1b2-0000-7000-8000-00000000000f";

describe("the query", () => {
  it("refuses an unknown parameter of every route, and names it", async () => {
    await using stage = await openStage();
    expect(ROUTES.length).toBeGreaterThan(80);
    for (const { method, path } of ROUTES) {
      const url = `http://127.0.0.1${path.replace(/:\w+/g, ID)}?ofset=1`;
      const { status, body } = await stage.call(method, url, method === "GET" ? undefined : {});
      expect([`${method} ${path}`, status, body.error?.details]).toEqual([
        `${method} ${path}`,
        400,
        { field: "ofset" },
      ]);
    }
  });

  it("says what a route reads, and what was probably meant", async () => {
    await using stage = await openStage();
    const { body } = await stage.get("/dead-letter?qeue=mail");
    expect(body.error.message).toMatch(
      /^query: "qeue" is no parameter of GET \/ojs\/v1\/dead-letter; did you mean queue\? send only cursor, /,
    );
    expect((await stage.get("/jobs/x?y=1")).body.error.message).toContain("send only wait_ms");
  });

  it("refuses a parameter that is sent twice", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.get("/jobs?queue=a&queue=b");
    expect([status, body.error.message]).toEqual([
      400,
      'queue: it is sent twice, with "a" and "b"; send it once',
    ]);
  });

  it("refuses two parameters that contradict each other, on every route that takes both", async () => {
    await using stage = await openStage();
    let called = 0;
    for (const [one, other] of EITHER)
      for (const route of ROUTES) {
        const names = queryNames(route);
        if (!names.has(one) || !names.has(other)) continue;
        const url = `http://127.0.0.1${route.path.replace(/:\w+/g, ID)}?${one}=2&${other}=3`;
        const { status, body } = await stage.call(route.method, url);
        expect([url, status, body.error?.details]).toEqual([url, 400, { field: one }]);
        called += 1;
      }
    expect(called).toBeGreaterThan(40);
    expect((await stage.get("/admin/jobs?limit=5&per_page=5")).status).toBe(200);
  });

  it.each([
    `/events/stream?channel=job:${ID}&job_id=${ID}`,
    "/events/stream?channel=queue:a&queues=b",
    `/jobs/${ID}/events?channel=all`,
    "/queues/a/events?queue=b",
  ])("refuses a stream that is asked for in two ways: %s", async (path) => {
    await using stage = await openStage();
    expect((await stage.get(path)).status).toBe(400);
  });

  it("takes what the public admin page sends with every list", async () => {
    await using stage = await openStage();
    const lists = [
      "/admin/stats/history?period=5m&queue=a",
      "/admin/queues?page=1&per_page=50",
      "/admin/jobs?queue=a&state=available&type=a.b&page=1&per_page=20&sort=created_at&order=desc",
      "/admin/workers?page=1&per_page=50",
      "/admin/dead-letter?queue=a&type=a.b&page=1&per_page=20",
      "/crons?page=1&per_page=50",
      "/workflows?state=running&page=1&per_page=20",
      "/rate-limits?page=1&per_page=50",
      "/events?type=job.completed&since=2030-01-01T00:00:00Z&page=1&per_page=50",
      "/unique-jobs?page=1&per_page=50",
    ];
    for (const path of lists) expect([path, (await stage.get(path)).status]).toEqual([path, 200]);
  });
});

const fieldOf = ({ field }: { field: string }) => field;

/** A field of a route's body without its last letter but one, which is no field; undefined if there is none. */
function typoIn({ path, body }: (typeof ROUTES)[number]): string | undefined {
  if (!body || path.includes("/calls/") || path.endsWith("/session")) return undefined;
  const fields = fieldsOf(body);
  return fields
    .filter((field) => field.length > 4)
    .map((field) => field.slice(0, -2) + field.slice(-1))
    .find((field) => !fields.includes(field));
}

/** The names of the fields of a schema of an object, or of what it wraps. */
function fieldsOf(schema: z.ZodType): string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  const { innerType, options, out } = schema.def as {
    readonly innerType?: z.ZodType;
    readonly options?: readonly z.ZodType[];
    readonly out?: z.ZodType;
  };
  return [innerType, out, ...(options ?? [])].flatMap((inner) => (inner ? fieldsOf(inner) : []));
}

describe("a body", () => {
  it.each([
    ["a timeout with a typo", { timout: 30 }, "timout", "timeout"],
    ["an option with a typo", { options: { priorty: 3 } }, "options.priorty", "priority"],
    ["a name of another system", { options: { retires: 3 } }, "options.retires", "retry"],
    [
      "a value that the server sets",
      { options: { max_attempts: 3 } },
      "options.max_attempts",
      "retry.max_attempts",
    ],
    ["another way to write it", { totalTimeoutMs: 3 }, "totalTimeoutMs", "total_timeout_ms"],
    ["another unit", { options: { timeout_seconds: 5 } }, "options.timeout_seconds", "timeout"],
    ["another unit of time", { timeout_millis: 5 }, "timeout_millis", "timeout_ms"],
    ["a short name", { options: { grace: 5 } }, "options.grace", "grace_period"],
    ["a field of a retry policy", { retry: { max_atempts: 2 } }, "retry.max_atempts", "max_attempts"],
  ])("is answered with a warning for %s", async (_what, more, field, meant) => {
    await using stage = await openStage();
    const { status, body, headers } = await stage.post("/jobs", { type: "a.b", args: [], ...more });
    const message = `${field}: it is not known and has no effect; did you mean ${meant}?`;
    expect([status, body.warnings]).toEqual([201, [{ code: "unknown_field", field, message }]]);
    expect(headers.get("ojs-warning")).toBe(message);
    expect(body.job.id).toEqual(expect.any(String));
  });

  it("is answered with a warning for an option that nothing reads where it stands", async () => {
    await using stage = await openStage();
    const job = { type: "a.b", args: [] };
    const cron = { name: "c", cron: "@daily", ...job };
    for (const [path, body, field, meant] of [
      ["/jobs/batch", { jobs: [job], queue: "mail" }, "queue", "queue of each job"],
      ["/jobs/batch", { jobs: [job], timout: 5 }, "timout", "timeout of each job"],
      ["/workflows", { type: "chain", steps: [job], queue: "mail" }, "queue", "options.queue"],
      ["/workflows", { type: "group", jobs: [job], timeout: 5 }, "timeout", "options.timeout"],
      ["/cron", { ...cron, timeout: 5 }, "timeout", "options.timeout"],
      ["/cron", { ...cron, options: { timout: 5 } }, "options.timout", "timeout"],
      ["/jobs/batch", { jobs: [job], options: { queue: "mail" } }, "options", "options of each job"],
    ] as const) {
      const { status, body: said } = await stage.post(path, body);
      expect([path, status]).toEqual([path, path === "/cron" && "options" in body ? 200 : 201]);
      const message = `${field}: it is not known and has no effect; did you mean ${meant}?`;
      expect(said.warnings).toEqual([{ code: "unknown_field", field, message }]);
    }
  });

  it("has no warning for fields of users and extensions", async () => {
    await using stage = await openStage();
    const { body, headers } = await stage.post("/jobs", {
      type: "a.b",
      args: [{ timout: 1 }],
      meta: { timout: 1 },
      x_timeout: 1,
      ext_retry: 1,
      schema: "urn:x",
      version: 2,
      customer: "c",
      options: { retry: { max_attempts: 1 }, tags: [], metadata: { prioirty: 1 } },
    });
    expect([body.warnings, headers.get("ojs-warning")]).toEqual([undefined, null]);
  });

  it("is warned about in batches, workflows, crons and settings of queues, at most ten times", async () => {
    await using stage = await openStage();
    const job = { type: "a.b", args: [], options: { timout: 1 } };
    const fields = async (method: string, path: string, body: object) =>
      (await stage.call(method, path, body)).body.warnings.map(({ field }: { field: string }) => field);
    expect(await fields("POST", "/jobs/batch", { jobs: [job] })).toEqual(["jobs.0.options.timout"]);
    const nested = { type: "chain", steps: [{ type: "group", jobs: [job] }], optoins: {} };
    expect(await fields("POST", "/workflows", nested)).toEqual(["steps.0.jobs.0.options.timout", "optoins"]);
    const cron = { name: "c", expression: "0 9 * * *", job_template: job };
    expect(await fields("POST", "/cron", cron)).toEqual(["job_template.options.timout"]);
    const config = { timeouts: { grace_perid: 3 } };
    expect(await fields("PUT", "/admin/queues/q/config", config)).toEqual(["timeouts.grace_perid"]);
    expect(await fields("POST", "/jobs/batch", { jobs: Array(30).fill(job) })).toHaveLength(10);
  });

  it("of every kind: a known field with a typo is named, in a warning or in a refusal", async () => {
    let called = 0;
    for (const route of new Map(ROUTES.map((each) => [each.body, each])).values()) {
      const typo = typoIn(route);
      if (typo === undefined) continue;
      // An action may end what it acts on, so each has its own server.
      await using stage = await openStage({ webhooks: { sender: fakeSender().sender } });
      await stage.call("PUT", "/admin/tenants/t-1", {});
      const things = await make(stage, {});
      const body = { ...bodyOf(route, things), [typo]: null };
      const said = await stage.call(route.method, `http://127.0.0.1${pathOf(route, things)}`, body);
      const name = `${route.method} ${route.path} ${typo}`;
      if (said.status === 409 || said.status === 404) continue;
      const fields = said.status < 300 ? said.body.warnings?.map(fieldOf) : [said.body.error?.details?.field];
      expect([name, said.status, fields]).toEqual([name, said.status, expect.arrayContaining([typo])]);
      called += 1;
    }
    expect(called).toBeGreaterThan(35);
  });

  it("that deletes or retries many is refused if it says something unknown", async () => {
    await using stage = await openStage();
    const id = await deadLetter(stage, "a");
    const odd = { confirm: true, queeu: "b" };
    for (const [method, path] of [
      ["DELETE", "/dead-letter"],
      ["DELETE", "/admin/dead-letter"],
      ["POST", "/dead-letter/retry"],
      ["POST", "/admin/jobs/bulk/delete"],
      ["DELETE", "/admin/queues/a/jobs"],
    ] as const)
      expect([path, (await stage.call(method, path, odd)).status]).toEqual([path, 400]);
    expect((await stage.job(id)).state).toBe("discarded");
  });
});

/** A job that has failed for good. */
async function deadLetter(stage: Stage, queue: string, type = "test.job"): Promise<string> {
  const retry = { max_attempts: 1, on_exhaustion: "dead_letter" };
  const { id } = await stage.enqueue({ queue, retry }, { type });
  await stage.fetch({ queues: [queue] });
  await stage.post("/workers/nack", { job_id: id, error: { code: "x", message: "no" } });
  return id;
}

describe("dead letters", () => {
  const ids = (body: { jobs: { id: string }[] }) => body.jobs.map(({ id }) => id);

  it("are listed, retried and deleted by queue and type, and no others", async () => {
    await using stage = await openStage();
    const mine = await deadLetter(stage, "mine", "a.b");
    const other = await deadLetter(stage, "mine", "c.d");
    const foreign = await deadLetter(stage, "foreign", "a.b");
    expect(ids((await stage.get("/dead-letter?queue=mine")).body)).toEqual([mine, other]);
    expect(ids((await stage.get("/dead-letter?queue=mine&type=a.b")).body)).toEqual([mine]);
    expect((await stage.get("/dead-letter?type=a.b")).body.pagination).toMatchObject({
      total: 2,
      total_is_exact: true,
    });
    const deleted = await stage.call("DELETE", "/dead-letter?queue=mine&type=a.b&confirm=true");
    expect([deleted.status, deleted.body.deleted]).toEqual([200, 1]);
    const filter = { queue: "mine" };
    const retried = await stage.post("/dead-letter/retry", { filter, confirm: true });
    expect(retried.body.retried).toBe(1);
    expect(ids((await stage.get("/dead-letter")).body)).toEqual([foreign]);
    expect((await stage.get("/dead-letter/stats")).body).toMatchObject({
      total: 1,
      by_queue: { foreign: 1 },
    });
  });

  it("are deleted as a whole only with confirm", async () => {
    await using stage = await openStage();
    await deadLetter(stage, "a");
    expect((await stage.call("DELETE", "/dead-letter")).status).toBe(400);
    const gone = await stage.call("DELETE", "/dead-letter", { confirm: true });
    expect([gone.status, gone.body.deleted]).toEqual([200, 1]);
  });

  it("are deleted by their age", async () => {
    await using stage = await openStage();
    await deadLetter(stage, "a");
    await stage.advance("2h");
    const young = await deadLetter(stage, "a");
    const { body } = await stage.call("DELETE", "/dead-letter", { older_than: "1h", confirm: true });
    expect([body.deleted, ids((await stage.get("/dead-letter")).body)]).toEqual([1, [young]]);
  });
});

describe("a page", () => {
  it("begins at an offset in every list that takes one", async () => {
    await using stage = await openStage();
    const job_template = { type: "a.b", args: [] };
    for (const name of ["a", "b", "c"]) {
      await deadLetter(stage, `q-${name}`);
      await stage.post("/cron", { name, expression: "0 9 * * *", job_template });
      await stage.post("/workflows", { type: "chain", name, steps: [job_template] });
      await stage.post("/workers/heartbeat", { worker_id: `w-${name}` });
    }
    for (const name of ["t-1", "t-2", "t-3"]) {
      await stage.call("PUT", `/admin/tenants/${name}`, {});
      const tenant = await stage.engine.tenant(name);
      for (let count = 0; count < 3; count++) await tenant.enqueue(defineJob({ type: "a.b" }), {});
    }
    const lists = ROUTES.filter((route) => route.method === "GET" && queryNames(route).has("offset"));
    expect(lists.map(({ path }) => path)).toContain("/ojs/v1/admin/tenants/:id/jobs");
    expect(lists.length).toBeGreaterThanOrEqual(10);
    for (const { path: pattern } of lists) {
      const path = pattern.replace("/tenants/:id/", "/tenants/t-2/");
      expect(path).not.toContain(":");
      const all = (await stage.get(`${path}?limit=50`)).body;
      const name = Object.keys(all).find((key) => Array.isArray(all[key])) as string;
      const tail = (await stage.get(`${path}?limit=1&offset=1`)).body;
      expect([path, tail[name]]).toEqual([path, all[name].slice(1, 2)]);
      if (pattern !== path) expect(tail[name]).toHaveLength(1);
      const past = (await stage.get(`${path}?offset=4000`)).body;
      expect([path, past[name], past.pagination.has_more]).toEqual([path, [], false]);
      const both = await stage.get(`${path}?offset=1&cursor=${ID}`);
      expect([path, both.status]).toEqual([path, 400]);
    }
  });

  it("of a search is refused at an offset or a page by number: it goes on by cursor", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    for (const [query, field] of [
      ["offset=1", "offset"],
      ["page=2", "page"],
    ]) {
      const { status, body } = await stage.get(`/admin/jobs?search=test&${query}`);
      expect([status, body.error?.details]).toEqual([400, { field }]);
    }
    for (const query of ["offset=0", "page=1"])
      expect([query, (await stage.get(`/admin/jobs?search=test&${query}`)).status]).toEqual([query, 200]);
  });

  it("that is full and the last has no cursor", async () => {
    await using stage = await openStage();
    for (const type of ["a.a", "a.b", "a.c", "a.d"]) {
      await deadLetter(stage, "full");
      await stage.post("/jobs", { type, args: [], unique: { keys: ["type"] } });
    }
    for (const list of [
      "/jobs?queue=full",
      "/admin/jobs?queue=full",
      "/dead-letter?queue=full",
      "/admin/dead-letter?queue=full",
      "/unique-jobs?",
    ])
      for (const page of ["limit=4", "limit=2&offset=2", "limit=1&offset=3"]) {
        const { body } = await stage.get(`${list}&${page}`);
        const { has_more, next_cursor, total, total_is_exact } = body.pagination;
        expect([list, page, has_more, next_cursor]).toEqual([list, page, false, null]);
        expect([list, total, total_is_exact]).toEqual([list, 4, true]);
      }
  });

  it("that is not the last has a cursor, which leads through the whole list", async () => {
    await using stage = await openStage();
    const job_template = { type: "a.b", args: [] };
    for (const name of ["a", "b", "c", "d", "e"]) {
      await deadLetter(stage, `q-${name}`);
      await stage.post("/cron", { name, expression: "0 9 * * *", job_template });
      await stage.post("/workflows", { type: "chain", name, steps: [job_template] });
      await stage.post("/workers/heartbeat", { worker_id: `w-${name}` });
    }
    const lists = ROUTES.filter((route) => route.method === "GET" && queryNames(route).has("cursor"));
    for (const { path } of lists) {
      if (path === "/ojs/v1/events" || path.includes(":")) continue;
      const seen: unknown[] = [];
      let cursor: string | null = null;
      for (let pages = 0; pages < 30; pages++) {
        const size = queryNames(lists.find((route) => route.path === path) as never).has("limit")
          ? "limit"
          : "per_page";
        const query: string = `${size}=2${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
        const { status, body } = await stage.get(`${path}?${query}`);
        expect([path, status]).toEqual([path, 200]);
        const name = Object.keys(body).find((key) => Array.isArray(body[key])) as string;
        seen.push(...body[name].map((item: unknown) => JSON.stringify(item)));
        const { pagination } = body;
        if (!pagination) break;
        if (!pagination.has_more) {
          cursor = null;
          break;
        }
        expect([path, pagination.next_cursor]).toEqual([path, expect.stringMatching(/./)]);
        cursor = pagination.next_cursor;
      }
      expect([path, new Set(seen).size]).toEqual([path, seen.length]);
      expect([path, cursor]).toEqual([path, null]);
    }
  });
});

describe("options of a workflow", () => {
  it("are the defaults of all its jobs; those of inner workflows and jobs go first", async () => {
    await using stage = await openStage();
    const { status } = await stage.post("/workflows", {
      type: "group",
      options: { queue: "mail", priority: 5, timeout: 60, total_timeout: 600, retry: { max_attempts: 7 } },
      jobs: [
        { type: "a.a", args: [] },
        { type: "a.b", args: [], options: { timeout_ms: 1_500, priority: 0 } },
        { type: "a.c", args: [], queue: "other" },
        { type: "chain", options: { queue: "inner" }, steps: [{ type: "a.d", args: [] }] },
      ],
    });
    expect(status).toBe(201);
    const jobs = (await stage.get("/jobs?limit=10")).body.jobs.filter(({ type }: { type: string }) =>
      type.startsWith("a."),
    );
    const common = { total_timeout_ms: 600_000, max_attempts: 7 };
    expect(jobs).toMatchObject([
      { type: "a.a", queue: "mail", priority: 5, timeout_ms: 60_000, ...common },
      { type: "a.b", queue: "mail", priority: 0, timeout_ms: 1_500, ...common },
      { type: "a.c", queue: "other", priority: 5, timeout_ms: 60_000, ...common },
      { type: "a.d", queue: "inner", priority: 5, timeout_ms: 60_000, ...common },
    ]);
  });

  it("hold for steps with depends_on, and for callbacks", async () => {
    await using stage = await openStage();
    const steps = [{ id: "one", type: "a.b", args: [] }];
    await stage.post("/workflows", { name: "x", steps, options: { queue: "mail" } });
    expect(await stage.fetch({ queues: ["mail"] })).toMatchObject({ type: "a.b" });
    const callbacks = { on_complete: { type: "a.end", args: [] } };
    const jobs = [{ type: "a.c", args: [] }];
    await stage.post("/workflows", { type: "batch", jobs, callbacks, options: { queue: "mail" } });
    const { id } = await stage.fetch({ queues: ["mail"] });
    await stage.post("/workers/ack", { job_id: id });
    await stage.advance("1s");
    expect(await stage.fetch({ queues: ["mail"] })).toMatchObject({ type: "a.end" });
  });

  it("are checked", async () => {
    await using stage = await openStage();
    const steps = [{ type: "a.b", args: [] }];
    const { status, body } = await stage.post("/workflows", {
      type: "chain",
      steps,
      options: { timeout: 0 },
    });
    expect([status, body.error.details]).toEqual([400, { field: "options.timeout" }]);
  });
});

it.each([
  ["PUT", "/admin/queues/q/config", { colour: "red" }, "colour"],
  ["POST", "/queues", { name: "q", config: { colour: "red" } }, "config.colour"],
  ["POST", "/cron", { name: "c", cron: "@daily", type: "a.b", args: [], zone: "UTC" }, "zone"],
  ["PUT", "/admin/pools/p", { queues: ["q"], shares: 3 }, "shares"],
  ["POST", "/queues/q/pause", { until: "tomorrow" }, "until"],
] as const)("a setting that %s %s does not know is named in a warning", async (method, path, body, field) => {
  await using stage = await openStage();
  const { status, body: said } = await stage.call(method, path, body);
  expect([path, status < 300]).toEqual([path, true]);
  expect(said.warnings).toEqual([
    { code: "unknown_field", field, message: `${field}: it is not known and has no effect` },
  ]);
});

it("warnings about fields stand beside those of the route itself", async () => {
  await using stage = await openStage();
  const hook = { url: "https://example.com/hook", events: ["job.no_such_event"], colour: "red" };
  const { body } = await stage.post("/webhooks/subscriptions", hook);
  expect(body.warnings.map(({ field }: { field: string }) => field)).toEqual(["colour", "events"]);
  expect(body.subscription.events).toEqual(["job.no_such_event"]);
});

it("the client logs a warning of the server, each text once", async () => {
  const logged: object[] = [];
  const note = (fields: object) => void logged.push(fields);
  const logger = { debug() {}, info() {}, warn: note, error: note };
  const warning = "options.timout: it is not known and has no effect; did you mean timeout?";
  await using client = openClient({
    url: "http://localhost:1",
    logger,
    fetch: async () => Response.json({ job: {} }, { status: 201, headers: { "OJS-Warning": warning } }),
  });
  const job = defineJob({ type: "a.b" });
  await client.enqueue(job, {});
  await client.enqueue(job, {});
  expect(logged).toEqual([{ what: "enqueue", warning }]);
});
