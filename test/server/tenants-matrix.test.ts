import { describe, expect, it } from "vitest";
import { createKey, type KeyOptions } from "../../src/server/access/auth.ts";
import { ROLES, type Role } from "../../src/server/access/roles.ts";
import { queryNames } from "../../src/server/http/query-names.ts";
import type { Route } from "../../src/server/route.ts";
import { ROUTES, STREAM_ROUTES } from "../../src/server/routes/all.ts";
import { fakeSender } from "../engine/webhook-stage.ts";
import { bodyOf, MAKING, make, NOTHING, pathOf, type Things, waits } from "./route-matrix.ts";
import { openStage, type Stage } from "./stage.ts";

/** Every route is called by each of two tenants with every id and name of the other. */
const TENANTS = ["a", "b"] as const;
type Tenant = (typeof TENANTS)[number];

const ROLE_NAMES = Object.keys(ROLES) as Role[];
/** Of an admin for all, of an admin of each tenant, and of each other role of each tenant: `worker@a`. */
const keys = new Map<string, { role: Role; tenant?: Tenant } & ReturnType<typeof createKey>>([
  ["all", { role: "admin", ...createKey() }],
  ...TENANTS.flatMap((tenant) =>
    ROLE_NAMES.map((role) => [keyOf(role, tenant), { role, tenant, ...createKey() }] as const),
  ),
]);
function keyOf(role: Role, tenant: Tenant): string {
  return role === "admin" ? tenant : `${role}@${tenant}`;
}
const as = (name: string) => ({ Authorization: `Bearer ${keys.get(name)?.key}` });

/** Each world makes ids of its own: with the same seed, a new id of one would be an old id of the other. */
function openWithTenants(seed = 1): Promise<Stage> {
  const entries = [...keys].map(([name, { key: _key, ...rest }]): KeyOptions => ({ name, ...rest }));
  return openStage({ seed, webhooks: { sender: fakeSender().sender } }, { keys: entries });
}

const NOT_REPLAYED = /\/session$|\/ready$|\/openapi\.json$/;
const routes = ROUTES.filter(
  (route) =>
    !STREAM_ROUTES.includes(route) &&
    route.right !== "open" &&
    !NOT_REPLAYED.test(route.path) &&
    !waits(route),
);
const reads = routes.filter(({ method }) => method === "GET");
const writes = routes.filter(({ method }) => method !== "GET");

interface Said {
  readonly name: string;
  readonly status: number;
  readonly body: string;
}

/** What changes from run to run: new ids, cursors (which say nothing: see event-cursors), how long the server runs. */
function plain(body: unknown): string {
  return JSON.stringify(body)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/"(?:next_cursor|cursor|before)":"?[^",}]*"?/g, '"cursor":"<cursor>"')
    .replaceAll(/"(?:request_id|fence|uptime_seconds|secret)":[^,}]+/g, "<->");
}

/** Parameters of a query that an id of the other tenant could stand in. */
const ID_PARAMETERS = ["job_id", "subscription_id", "search", "cursor", "after", "before", "actor"];

/** The path of a route with the id that it takes, with each id of another kind, and with each id in its query. */
function pathsOf(route: Route, things: Things): string[] {
  const path = pathOf(route, things);
  const ids = Object.values(things) as string[];
  const others = route.path.includes(":id")
    ? ids.map((id) => route.path.replace(":id", encodeURIComponent(id)).replace(/:\w+/g, "t"))
    : [];
  const names = ID_PARAMETERS.filter((name) => queryNames(route).has(name));
  const asked = names.flatMap((name) =>
    ids.map((id) => `${path}${path.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(id)}`),
  );
  return [...new Set([path, ...others, ...asked])];
}

async function callAll(stage: Stage, by: string, things: Things, of: readonly Route[]): Promise<Said[]> {
  const said: Said[] = [];
  for (const route of of)
    for (const path of pathsOf(route, things)) {
      const url = `http://127.0.0.1${path}`;
      const { status, body } = await stage.call(route.method, url, bodyOf(route, things), as(by));
      said.push({ name: `${route.method} ${route.path}`, status, body: plain(body) });
    }
  return said;
}

/** Everything that a tenant sees of itself. */
async function picture(stage: Stage, tenant: Tenant): Promise<string> {
  const paths = [
    "/admin/jobs?per_page=200",
    "/cron",
    "/workflows",
    "/rate-limits",
    "/queues",
    "/admin/maintenance",
    "/admin/workers",
    "/admin/audit?limit=200",
    "/admin/timeouts",
    "/unique-jobs",
    "/dead-letter",
    "/webhooks/subscriptions",
    "/admin/calendars",
    "/admin/pools",
    "/admin/sagas",
    "/webhooks/deliveries",
    "/schemas",
  ];
  const bodies: unknown[] = [];
  for (const path of paths) bodies.push((await stage.call("GET", path, undefined, as(tenant))).body);
  return JSON.stringify(bodies);
}

describe.each([
  ["a", "b"],
  ["b", "a"],
] as const)("all routes, called by tenant %s with every id of tenant %s", (caller, other) => {
  it("a read shows what it shows where the other tenant has nothing", async () => {
    await using full = await openWithTenants();
    await using empty = await openWithTenants(2);
    const things = await make(full, as(other), as(other), other);
    await empty.advance(MAKING);
    const [seen, expected] = [
      await callAll(full, caller, things, reads),
      await callAll(empty, caller, things, reads),
    ];
    expect(seen).toEqual(expected);
    // An id of the other tenant is a 404 like any unknown one.
    const byId = seen.filter(({ name }) => /:id/.test(name));
    expect(byId.length).toBeGreaterThan(200);
    for (const { name, status } of byId)
      expect([name, [400, 403, 404].includes(status)]).toEqual([name, true]);
    for (const { body } of seen) for (const id of Object.values(things)) expect(body).not.toContain(id);
  });

  it("an action answers as if the other had nothing, and changes nothing of it", async () => {
    await using full = await openWithTenants();
    await using empty = await openWithTenants(2);
    const things = await make(full, as(other), as(other), other);
    await empty.advance(MAKING);
    const before = await picture(full, other);
    for (const route of writes) {
      const seen = await callAll(full, caller, things, [route]);
      expect(seen).toEqual(await callAll(empty, caller, things, [route]));
      for (const { name, status } of seen)
        if (/:id/.test(name) && !/workers/.test(name))
          expect([name, [400, 403, 404].includes(status)]).toEqual([name, true]);
      expect([route.path, await picture(full, other)]).toEqual([route.path, before]);
    }
    expect(writes.length).toBeGreaterThan(60);
  });

  it.each(ROLE_NAMES.filter((role) => role !== "admin"))(
    "a %s sees and changes no more of it than an admin",
    async (role) => {
      await using full = await openWithTenants();
      await using empty = await openWithTenants(2);
      const things = await make(full, as(other), as(other), other);
      await empty.advance(MAKING);
      const before = await picture(full, other);
      for (const route of routes)
        expect(await callAll(full, keyOf(role, caller), things, [route])).toEqual(
          await callAll(empty, keyOf(role, caller), things, [route]),
        );
      expect(await picture(full, other)).toBe(before);
    },
  );
});

describe("the tenant of a request", () => {
  it("comes from the key: a header alone gives no right", async () => {
    await using stage = await openWithTenants();
    const things = await make(stage, as("b"), as("b"), "b");
    const get = (headers: Record<string, string>) =>
      stage.call("GET", `/jobs/${things.waiting}`, undefined, headers);
    expect((await get(as("b"))).status).toBe(200);
    expect((await get({ ...as("b"), "X-OJS-Tenant": "b" })).body.job.meta.tenant_id).toBe("b");
    expect((await get(as("a"))).status).toBe(404);
    for (const tenant of ["b", "no-such-tenant"]) {
      const { status, body } = await get({ ...as("a"), "X-OJS-Tenant": tenant });
      expect([status, body.error.message]).toEqual([403, "The key of a may not work within this tenant"]);
    }
    expect((await get({ ...as("a"), "X-OJS-Tenant": "no tenant" })).status).toBe(400);
    expect((await get(as("all"))).status).toBe(404);
    expect((await get({ ...as("all"), "X-OJS-Tenant": "b" })).status).toBe(200);
  });

  it("must be chosen with a key for several, and a key without tenants cannot choose unless it is an admin's", async () => {
    const [some, none] = [createKey(), createKey()];
    await using stage = await openStage(
      {},
      {
        keys: [
          { name: "some", role: "producer", hash: some.hash, tenant: ["a", "b"] },
          { name: "none", role: "producer", hash: none.hash },
        ],
      },
    );
    const post = (key: string, tenant?: string, meta?: object) =>
      stage.call(
        "POST",
        "/jobs",
        { type: "a.b", args: [], ...(meta && { meta }) },
        { Authorization: `Bearer ${key}`, ...(tenant !== undefined && { "X-OJS-Tenant": tenant }) },
      );
    expect((await post(some.key)).status).toBe(400);
    expect((await post(some.key, "a")).body.job.meta.tenant_id).toBe("a");
    expect((await post(some.key, "c")).status).toBe(403);
    expect((await post(none.key, "a")).status).toBe(403);
    expect((await post(none.key)).body.job.meta?.tenant_id).toBeUndefined();
    expect((await post(some.key, "a", { tenant_id: "b" })).status).toBe(400);
    expect((await post(some.key, "b", { tenant_id: "b" })).status).toBe(201);
  });

  it("is refused what is about the whole server", async () => {
    await using stage = await openWithTenants();
    const server = ROUTES.filter(({ scope, right }) => scope === "server" && right !== "open");
    expect(server.length).toBeGreaterThan(7);
    for (const route of server) {
      const path = `http://127.0.0.1${pathOf(route, NOTHING)}`;
      const { status } = await stage.call(route.method, path, bodyOf(route, NOTHING), as("a"));
      expect([route.path, status]).toEqual([route.path, 403]);
    }
    const url = "/metrics?format=prometheus";
    expect((await stage.call("GET", url, undefined, as("a"))).status).toBe(403);
  });
});

describe("streams", () => {
  it("carry no event of another tenant", async () => {
    await using stage = await openWithTenants();
    let read = 0;
    const made = await make(stage, as("b"), as("b"), "b");
    const { cursor } = (await stage.call("GET", "/events?limit=1", undefined, as("b"))).body;
    const filters = [
      `channel=job:${made.waiting}`,
      "channel=queue:wait",
      `job_id=${made.waiting}`,
      "queue=wait",
    ];
    const asked = STREAM_ROUTES.flatMap((route) => [
      [route, pathOf(route, made), {}] as const,
      // From before everything that the other did, and from the middle of it.
      [route, pathOf(route, made), { "Last-Event-ID": "0" }] as const,
      [route, pathOf(route, made), { "Last-Event-ID": String(cursor) }] as const,
      ...(route.path === "/ojs/v1/events/stream"
        ? filters.map((filter) => [route, `${route.path}?${filter}`, {}] as const)
        : []),
    ]);
    for (const [route, path, more] of asked) {
      const request = new Request(`http://127.0.0.1${path}`, { headers: { ...as("a"), ...more } });
      const response = await stage.server.fetch(request);
      if ([400, 404].includes(response.status)) continue;
      expect([path, response.status]).toEqual([path, 200]);
      const reader = response.body?.getReader();
      let text = "";
      const reading = (async () => {
        for (;;) {
          const chunk = await reader?.read();
          if (!chunk || chunk.done) return;
          text += new TextDecoder().decode(chunk.value);
        }
      })();
      await make(stage, as("b"), as("b"), "b");
      const own = await stage.call(
        "POST",
        "/jobs",
        { type: "own.job", args: [], options: { queue: "wait" } },
        as("a"),
      );
      await stage.advance("10s");
      await reader?.cancel();
      await reading;
      expect([path, text.includes("a.b")]).toEqual([path, false]);
      if (route.path.includes("/events") && !/:id|job/.test(path))
        expect([path, text.includes(own.body.job.id)]).toEqual([path, true]);
      read += 1;
    }
    expect(read).toBeGreaterThan(8);
  });
});

describe("limits of a tenant", () => {
  const put = (stage: Stage, limits: object) =>
    stage.call("PUT", "/admin/tenants/a/limits", limits, as("all"));
  const post = (stage: Stage, tenant: string, args: unknown[] = []) =>
    stage.call("POST", "/jobs", { type: "a.b", args }, as(tenant));

  it("bound its waiting jobs, its rate and its payloads, and nobody else's", async () => {
    await using stage = await openWithTenants();
    await put(stage, { max_queue_depth: 2 });
    expect((await post(stage, "a")).status).toBe(201);
    expect((await post(stage, "a")).status).toBe(201);
    const full = await post(stage, "a");
    expect([full.status, full.body.error.code, full.headers.get("retry-after")]).toEqual([
      429,
      "TENANT_LIMIT_EXCEEDED",
      "1",
    ]);
    expect(full.body.error.details).toEqual({
      tenant_id: "a",
      limit: "max_queue_depth",
      current: 2,
      maximum: 2,
    });
    expect((await post(stage, "b")).status).toBe(201);
    await put(stage, { max_enqueue_rate: { limit: 2, period: "PT1M" } });
    expect([(await post(stage, "a")).status, (await post(stage, "a")).status]).toEqual([201, 201]);
    expect((await post(stage, "a")).body.error.details.limit).toBe("max_enqueue_rate");
    await stage.advance("30s");
    expect((await post(stage, "a")).status).toBe(201);
    await put(stage, { max_payload_bytes: 10 });
    expect((await post(stage, "a", ["x".repeat(50)])).status).toBe(413);
    expect((await post(stage, "b", ["x".repeat(50)])).status).toBe(201);
    expect((await post(stage, "a", [1])).status).toBe(201);
  });

  it("bound its active jobs over all its queues", async () => {
    await using stage = await openWithTenants();
    await put(stage, { max_concurrency: 2 });
    for (const queue of ["one", "two", "three"])
      for (const tenant of ["a", "b"])
        await stage.call("POST", "/jobs", { type: "a.b", args: [], options: { queue } }, as(tenant));
    const fetch = async (tenant: string) => {
      const asked = { queues: ["one", "two", "three"], count: 10, worker_id: "w-1" };
      return (await stage.call("POST", "/workers/fetch", asked, as(tenant))).body.jobs;
    };
    const [held, none] = [await fetch("a"), await fetch("a")];
    expect([held.length, none.length, (await fetch("b")).length]).toEqual([2, 0, 3]);
    await stage.call("POST", "/workers/ack", { job_id: held[0].id }, as("a"));
    expect((await fetch("a")).length).toBe(1);
  });

  it("and use are shown across tenants", async () => {
    await using stage = await openWithTenants();
    await post(stage, "a");
    await post(stage, "b");
    const { body } = await stage.call("GET", "/admin/tenants", undefined, as("all"));
    expect(body.items.map((tenant: { tenant_id: string }) => tenant.tenant_id)).toEqual(["a", "b"]);
    const stats = await stage.call("GET", "/admin/tenants/a/stats", undefined, as("all"));
    expect(stats.body).toMatchObject({ tenant_id: "a", total_jobs: 1, jobs: { available: 1 } });
    const jobs = await stage.call("GET", "/admin/tenants/a/jobs", undefined, as("all"));
    expect(jobs.body.items).toHaveLength(1);
    expect((await stage.call("DELETE", "/admin/tenants/a", undefined, as("all"))).status).toBe(409);
  });

  it("and a noisy neighbour are shown to who sees all tenants", async () => {
    await using stage = await openWithTenants();
    const jobs = Array.from({ length: 100 }, () => ({ type: "a.b", args: [] }));
    await stage.call("POST", "/jobs/batch", { jobs }, as("a"));
    await post(stage, "b");
    const { body } = await stage.call("GET", "/admin/tenants", undefined, as("all"));
    const noisy = body.items.map(({ tenant_id, noisy }: { tenant_id: string; noisy: string[] }) => [
      tenant_id,
      noisy,
    ]);
    expect(noisy).toEqual([
      ["a", ["queue_depth_ratio"]],
      ["b", []],
    ]);
    expect((await stage.call("GET", "/admin/tenants", undefined, as("b"))).status).toBe(403);
  });
});
