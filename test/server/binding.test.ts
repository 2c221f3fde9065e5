import { describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { openStage } from "./stage.ts";

describe("rate limits of the server (binding 18.1)", () => {
  it("every reply of a server that limits says the limit, what is left and when it is full again", async () => {
    await using stage = await openStage({}, { limits: { rate: 2 } });
    const read = async (path: string) => {
      const { status, headers } = await stage.get(path);
      return [status, ...["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`))];
    };
    const second = Math.ceil(stage.engine.now() / 1_000);
    expect(await read("/jobs")).toEqual([200, "2", "1", String(second + 1)]);
    expect(await read("/jobs/none")).toEqual([404, "2", "0", String(second + 1)]);
    expect(await read("/jobs")).toEqual([429, "2", "0", String(second + 1)]);
    await stage.advance("1s");
    expect(await read("/jobs?x=1")).toEqual([400, "2", "1", String(second + 2)]);
  });

  it("the rate of a key goes first, and a server without limits says nothing", async () => {
    const { key, hash } = createKey();
    await using stage = await openStage(
      {},
      { keys: [{ name: "a", role: "admin", hash, rate: 5 }], limits: { rate: 2 } },
    );
    const { headers } = await stage.call("GET", "/jobs", undefined, { Authorization: `Bearer ${key}` });
    expect(headers.get("x-ratelimit-limit")).toBe("5");
    await using open = await openStage();
    expect((await open.get("/jobs")).headers.has("x-ratelimit-limit")).toBe(false);
  });
});

describe("queues and types of the server itself", () => {
  it.each([
    ["POST", "/jobs", { type: "a.b", args: [], options: { queue: "curfew.workflows" } }],
    ["POST", "/jobs", { type: "curfew.workflow", args: [] }],
    ["POST", "/jobs/batch", { jobs: [{ type: "curfew.workflow", args: [] }] }],
    ["POST", "/workers/fetch", { queues: ["default", "curfew.workflows"] }],
    ["POST", "/workflows", { type: "chain", steps: [{ type: "a.b", args: [], queue: "curfew.x" }] }],
    ["POST", "/cron", { name: "c", cron: "0 9 * * *", type: "a.b", queue: "curfew.x" }],
    ["GET", "/jobs?queue=curfew.workflows", undefined],
    ["GET", "/admin/jobs?type=curfew.workflow", undefined],
    ["GET", "/queues/curfew.workflows", undefined],
    ["POST", "/queues/curfew.workflows/pause", {}],
    ["PUT", "/admin/queues/curfew.workflows/config", {}],
    ["DELETE", "/admin/queues/curfew.workflows/jobs", { states: ["pending"], confirm: true }],
  ])("%s %s is refused", async (method, path, body) => {
    await using stage = await openStage();
    const { status, body: said } = await stage.call(method, path, body);
    expect([status, said.error.message]).toEqual([400, expect.stringContaining("belong to the server")]);
  });

  it("their jobs are in no list, and nobody can change them", async () => {
    await using stage = await openStage();
    const { body } = await stage.post("/workflows", {
      type: "batch",
      jobs: [{ type: "a.b", args: [] }],
      callbacks: { on_complete: { type: "a.end", args: [] } },
    });
    expect((await stage.get("/jobs?limit=2")).body).toMatchObject({
      jobs: [{ type: "a.b" }, { type: "a.end" }],
      pagination: { total: 2, total_is_exact: true },
    });
    const { items, pagination } = (await stage.get("/admin/jobs")).body;
    expect([items.map(({ type }: { type: string }) => type), pagination.total]).toEqual([
      ["a.end", "a.b"],
      2,
    ]);
    const hidden = await stage.engine.service.rows.find({ queue: "curfew.workflows" }, { limit: 5 });
    const id = hidden.jobs[0]?.id as string;
    expect(hidden.jobs).toHaveLength(1);
    for (const [method, path] of [
      ["GET", `/jobs/${id}`],
      ["GET", `/admin/jobs/${id}`],
      ["DELETE", `/jobs/${id}`],
      ["POST", `/admin/jobs/${id}/cancel`],
      ["POST", `/jobs/${id}/activate`],
    ] as const)
      expect([path, (await stage.call(method, path)).status]).toEqual([path, 404]);
    expect((await stage.get(`/workflows/${body.id}`)).body.state).toBe("running");
  });
});

describe("workflows (binding 14)", () => {
  const steps = [
    { id: "welcome", type: "email.send", args: [], depends_on: [] },
    { id: "profile", type: "user.create", args: [], depends_on: [] },
    { id: "confirm", type: "email.send", args: [], depends_on: ["welcome", "profile"] },
  ];

  it("the reply to a creation has the steps with the client's ids, what each waits for, and a Location", async () => {
    await using stage = await openStage();
    const { status, body, headers } = await stage.post("/workflows", { name: "onboarding", steps });
    expect([status, headers.get("location")]).toEqual([201, `/ojs/v1/workflows/${body.id}`]);
    const expected = [
      { id: "welcome", type: "email.send", state: "available", depends_on: [] },
      { id: "profile", type: "user.create", state: "available", depends_on: [] },
      { id: "confirm", type: "email.send", state: "pending", depends_on: ["welcome", "profile"] },
    ];
    expect(body.workflow.steps).toMatchObject(expected);
    expect((await stage.get(`/workflows/${body.id}`)).body.workflow.steps).toMatchObject(expected);
    const fetched = await stage.fetch();
    expect(body.steps[0].job_id).toBe(fetched.id);
  });

  it("any graph without a cycle runs in its order, and a cycle is named with its place", async () => {
    await using stage = await openStage();
    const job = (id: string, ...depends_on: string[]) => ({ id, type: `g.${id}`, args: [id], depends_on });
    const odd = [job("d", "c", "a"), job("a"), job("b"), job("c", "a", "b")];
    const { status, body } = await stage.post("/workflows", { name: "odd", steps: odd });
    expect([status, body.type, body.steps_total]).toEqual([201, "graph", 4]);
    expect(
      body.steps.map(({ id, depends_on }: { id: string; depends_on: string[] }) => [id, depends_on]),
    ).toEqual([
      ["d", ["c", "a"]],
      ["a", []],
      ["b", []],
      ["c", ["a", "b"]],
    ]);
    for (const expected of ["a", "b", "c", "d"]) {
      const { id, step_id, depends_on, parent_results } = await stage.fetch();
      expect([step_id, depends_on]).toEqual([expected, undefined]);
      if (expected === "d") expect(parent_results).toEqual(["C", "A"]);
      await stage.post("/workers/ack", { job_id: id, result: expected.toUpperCase() });
      await stage.advance("500ms");
    }
    expect((await stage.get(`/workflows/${body.id}`)).body.state).toBe("completed");
    const cycle = await stage.post("/workflows", { steps: [job("a", "b"), job("b", "a")] });
    expect([cycle.status, cycle.body.error.message]).toEqual([
      400,
      expect.stringContaining("a after b after a"),
    ]);
    expect(JSON.stringify(cycle.body.error)).toContain("steps.0.depends_on.0");
  });

  it("steps without names wait for the ids of jobs, in nested workflows too", async () => {
    await using stage = await openStage();
    const job = { type: "a.b", args: [] };
    const { body } = await stage.post("/workflows", {
      type: "chain",
      steps: [job, { type: "group", jobs: [job, job] }, job],
    });
    const [first, left, right, last] = body.steps;
    expect([first, left, right, last].map(({ depends_on }) => depends_on)).toEqual([
      [],
      [first.id],
      [first.id],
      [left.id, right.id],
    ]);
  });

  it("the reply to a cancel says how many steps it ended, and how many had ended before", async () => {
    await using stage = await openStage();
    const { id } = (await stage.post("/workflows", { name: "x", steps })).body;
    await stage.post("/workers/ack", { job_id: (await stage.fetch()).id });
    await stage.advance("1s");
    const { body } = await stage.call("DELETE", `/workflows/${id}`);
    expect(body.workflow).toMatchObject({
      state: "cancelled",
      cancelled_at: expect.any(String),
      steps_cancelled: 2,
      steps_already_completed: 1,
    });
  });

  it("the newest come first, by number and by cursor, and the oldest with order=asc", async () => {
    await using stage = await openStage();
    for (const name of ["a", "b", "c"]) await stage.post("/workflows", { name, steps });
    const list = async (query: string) => {
      const { items, pagination } = (await stage.get(`/workflows${query}`)).body;
      return {
        names: items.map(({ name }: { name: string }) => name).join(""),
        next: pagination.next_cursor,
      };
    };
    expect(await list("")).toEqual({ names: "cba", next: null });
    expect((await list("?order=asc")).names).toBe("abc");
    expect((await list("?per_page=2&page=2")).names).toBe("a");
    const first = await list("?per_page=2&state=running");
    expect(first.names).toBe("cb");
    expect((await list(`?per_page=2&state=running&cursor=${first.next}`)).names).toBe("a");
    expect((await stage.get("/workflows?order=newest")).status).toBe(400);
  });

  it("the list has true counts", async () => {
    await using stage = await openStage();
    await stage.post("/workflows", { name: "x", steps });
    const { id } = await stage.fetch();
    await stage.post("/workers/ack", { job_id: id });
    await stage.advance("1s");
    expect((await stage.get("/workflows")).body.items).toMatchObject([
      { steps_total: 3, steps_completed: 1, jobs_completed: 1, counts_are_exact: true },
    ]);
  });
});

describe("queues (binding 11)", () => {
  it("the replies to pause and resume say when", async () => {
    await using stage = await openStage();
    const at = new Date(stage.engine.now()).toISOString();
    expect((await stage.post("/queues/q/pause")).body).toMatchObject({ status: "paused", paused_at: at });
    expect((await stage.post("/queues/q/resume")).body).toMatchObject({ status: "active", resumed_at: at });
  });
});

describe("heads of replies (binding 3, 4, 6.5, 19)", () => {
  it("every reply has the version, the media type and a request id, whatever was asked", async () => {
    await using stage = await openStage();
    for (const path of ["/jobs", "/jobs/none", "/nowhere", "/jobs?limit=x"]) {
      const { headers } = await stage.call("GET", path, undefined, { Accept: "text/html" });
      expect([path, headers.get("ojs-version"), headers.get("content-type")]).toEqual([
        path,
        "1.0",
        "application/openjobspec+json",
      ]);
      expect(headers.get("x-request-id")).toMatch(/./);
    }
    const own = await stage.call("GET", "/jobs/none", undefined, { "X-Request-ID": "req_mine" });
    expect([own.headers.get("x-request-id"), own.body.error.request_id]).toEqual(["req_mine", "req_mine"]);
  });

  it("a version that is not served is 422 unsupported", async () => {
    await using stage = await openStage();
    const { status, body } = await stage.call("GET", "/jobs", undefined, { "OJS-Version": "2.0" });
    expect([status, body.error.code]).toEqual([422, "unsupported"]);
  });

  it("a body of another media type is 400, and application/json is taken", async () => {
    await using stage = await openStage();
    const job = { type: "a.b", args: [] };
    const send = async (type: string) =>
      (await stage.call("POST", "/jobs", job, { "Content-Type": type })).status;
    expect([await send("application/json"), await send("text/plain")]).toEqual([201, 400]);
  });
});

describe("other spellings", () => {
  it("a period may be written as people do", async () => {
    await using stage = await openStage();
    const rate_limit = { key: "k", rate: { limit: 1, period: "1m" } };
    await stage.enqueue({ rate_limit });
    expect((await stage.get("/rate-limits/k")).body.period).toBe("PT60S");
    await stage.enqueue({ unique: { keys: ["type"], period: "1h", on_conflict: "ignore" } }, { type: "u.v" });
    const rule = { keys: ["type"], period: "1h", on_conflict: "ignore" };
    expect((await stage.post("/jobs", { type: "u.v", args: [], options: { unique: rule } })).status).toBe(
      200,
    );
  });

  it("a cron may name its queue at the top, beside a template too", async () => {
    await using stage = await openStage();
    const flat = { name: "a", cron: "0 9 * * *", type: "a.b", args: [], queue: "reports" };
    expect((await stage.post("/cron", flat)).body.cron.options).toEqual({ queue: "reports" });
    const job_template = { type: "a.b", args: [] };
    const nested = { name: "b", expression: "0 9 * * *", queue: "reports", job_template };
    expect((await stage.post("/cron", nested)).body.cron.options).toEqual({ queue: "reports" });
    const own = { ...job_template, options: { queue: "own" } };
    const both = await stage.post("/cron", { ...nested, name: "c", job_template: own });
    expect(both.body.cron.options).toEqual({ queue: "own" });
  });

  it("jobs are deleted by their age, and not cancelled by it", async () => {
    await using stage = await openStage();
    const [old] = [await stage.enqueue()];
    await stage.post(`/jobs/${old.id}/cancel`);
    await stage.advance("2h");
    const young = await stage.enqueue();
    await stage.post(`/jobs/${young.id}/cancel`);
    const filter = { state: "cancelled", older_than: "1h" };
    expect((await stage.post("/jobs/bulk/delete", { filter })).body.deleted).toBe(1);
    expect((await stage.job(young.id)).state).toBe("cancelled");
    const refused = await stage.post("/jobs/bulk/cancel", { filter: { queue: "default", older_than: "1h" } });
    expect(refused.status).toBe(400);
  });
});

describe("jobs for operators (admin API 7.1)", () => {
  it("are sorted by priority or by when they are due, page by page", async () => {
    await using stage = await openStage();
    const delays = ["PT3H", "PT1H", "PT2H"];
    for (const [index, delay] of delays.entries())
      await stage.enqueue({ scheduled_at: `+${delay}`, priority: [5, -3, 9][index] }, { args: [delay] });
    const read = async (query: string) => {
      const { body } = await stage.get(`/admin/jobs?${query}`);
      return [body.items.map(({ args }: { args: string[] }) => args[0]), body.pagination] as const;
    };
    expect((await read("sort=scheduled_at&order=asc"))[0]).toEqual(["PT1H", "PT2H", "PT3H"]);
    expect((await read("sort=scheduled_at"))[0]).toEqual(["PT3H", "PT2H", "PT1H"]);
    const [first, { next_cursor, total }] = await read("sort=priority&per_page=2");
    expect([first, total]).toEqual([["PT2H", "PT3H"], 3]);
    const [rest, pagination] = await read(`sort=priority&per_page=2&cursor=${next_cursor}`);
    expect([rest, pagination.has_more, pagination.next_cursor]).toEqual([["PT1H"], false, null]);
    expect((await read("sort=priority&order=asc&offset=1&per_page=1"))[0]).toEqual(["PT3H"]);
    expect((await stage.get("/admin/jobs?sort=priority&cursor=x")).status).toBe(400);
  });

  it("are refused with the reason where too many would have to be sorted", async () => {
    await using stage = await openStage();
    const jobs = Array.from({ length: 1_000 }, () => ({ type: "a.b", args: [] }));
    for (let batch = 0; batch < 5; batch++) await stage.post("/jobs/batch", { jobs });
    await stage.enqueue();
    const { status, body } = await stage.get("/admin/jobs?sort=priority");
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("narrow the filter")]);
    expect((await stage.get("/admin/jobs?sort=priority&type=test.job")).body.pagination.total).toBe(1);
  });
});
