import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey, type KeyOptions } from "../../src/server/access/auth.ts";
import { ROLES, type Role } from "../../src/server/access/roles.ts";
import { isAudited, type Route } from "../../src/server/route.ts";
import { ROUTES, STREAM_ROUTES } from "../../src/server/routes/all.ts";
import { fakeSender } from "../engine/webhook-stage.ts";
import { bodyOf, make as makeThings, pathOf, type Things, waits } from "./route-matrix.ts";
import { openStage, type Stage } from "./stage.ts";

/** Every route is called by every role within every kind of tenant, with ids that exist and bodies that are valid. */
const roles = Object.keys(ROLES) as Role[];
/** What tenants a key is bound to: none, one, several or any. */
const BINDINGS = [undefined, "t-1", ["t-1", "t-2"], "*"] as const;
const NONE = BINDINGS[0];
type Binding = (typeof BINDINGS)[number];
const nameOf = (role: Role, tenant: Binding) =>
  tenant === undefined ? role : `${role}@${BINDINGS.indexOf(tenant)}`;
const keys = new Map(
  roles.flatMap((role) => BINDINGS.map((tenant) => [nameOf(role, tenant), { role, tenant, ...createKey() }])),
);
/** A key that may choose a tenant chooses one. */
const as = (role: Role, tenant: Binding = NONE): Record<string, string> => ({
  Authorization: `Bearer ${keys.get(nameOf(role, tenant))?.key}`,
  ...(tenant !== undefined && { "X-OJS-Tenant": "t-1" }),
});
const ADMIN = as("admin");

async function openWithKeys(): Promise<Stage> {
  const entries = [...keys].map(
    ([name, { role, tenant, hash }]): KeyOptions => ({
      name,
      role,
      hash,
      ...(tenant !== undefined && { tenant }),
    }),
  );
  return openStage({ webhooks: { sender: fakeSender().sender } }, { keys: entries });
}

async function make(stage: Stage, worker: Role = "admin"): Promise<Things> {
  await stage.call("PUT", "/admin/tenants/t-1", {}, ADMIN);
  return makeThings(stage, ADMIN, ROLES[worker].includes("work") ? as(worker) : ADMIN);
}

const routes = ROUTES.filter((route) => !STREAM_ROUTES.includes(route) && !route.path.endsWith("/session"));

/** The job has neither ended nor saved anything. */
const MISSED_READS = ["/ojs/v1/jobs/:id/checkpoint 404", "/ojs/v1/jobs/:id/result 409"];
/** The worker lives, the queue has jobs, the job is available already, and the timeout is neither dead nor leased. */
const MISSED_ACTIONS = [
  "DELETE /ojs/v1/admin/workers/:id 409",
  "DELETE /ojs/v1/queues/:queue 409",
  "POST /ojs/v1/admin/jobs/:id/run 409",
  "POST /ojs/v1/admin/timeouts/:id/requeue 409",
  "POST /ojs/v1/calls/jobs.activate 409",
  "POST /ojs/v1/calls/jobs.reschedule 409",
  "POST /ojs/v1/calls/jobs.runNow 409",
  "POST /ojs/v1/calls/timeouts.extend 409",
  "POST /ojs/v1/calls/timeouts.revive 409",
  "POST /ojs/v1/jobs/:id/activate 409",
];

/** The line is not valid, nothing is there to revive, and no maintenance is on: nothing is written. */
const NO_CHANGE = [
  "/calls/jobs.import",
  "/calls/timeouts.requeue",
  "/calls/maintenance.end",
  // They read, but need the right of an operator.
  "/calls/webhooks.get",
  "/calls/webhooks.list",
  "/calls/webhooks.deliveries",
  "/calls/webhooks.delivery",
];

/** Everything that a forbidden call could have changed. */
async function picture(stage: Stage): Promise<string> {
  const paths = [
    "/admin/jobs?per_page=200",
    "/cron",
    "/workflows",
    "/rate-limits",
    "/webhooks/subscriptions",
    "/schemas",
    "/queues",
    "/admin/maintenance",
    "/admin/workers",
    "/admin/audit?limit=200",
    "/admin/tenants",
  ];
  const bodies: unknown[] = [];
  for (const path of paths) bodies.push((await stage.call("GET", path, undefined, ADMIN)).body);
  return JSON.stringify(bodies);
}

describe("all routes × all roles, called for real", () => {
  let stage: Stage;
  let things: Things;
  beforeAll(async () => {
    stage = await openWithKeys();
    things = await make(stage);
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  const call = (route: Route, headers: Record<string, string>) =>
    stage.call(route.method, `http://127.0.0.1${pathOf(route, things)}`, bodyOf(route, things), headers);

  it("a call without the right is a 403, without a key a 401, and neither changes anything", async () => {
    const before = await picture(stage);
    let refused = 0;
    for (const route of [...routes, ...STREAM_ROUTES]) {
      if (route.right === "open") continue;
      expect([route.method, route.path, (await call(route, {})).status]).toEqual([
        route.method,
        route.path,
        401,
      ]);
      for (const role of roles) {
        if (ROLES[role].includes(route.right)) continue;
        for (const tenant of BINDINGS) {
          const { status } = await call(route, as(role, tenant));
          const name = `${nameOf(role, tenant)} ${route.method} ${route.path}`;
          expect([name, status]).toEqual([name, 403]);
          refused += 1;
        }
      }
    }
    expect(refused).toBeGreaterThan(1_000);
    expect(await picture(stage)).toBe(before);
  });
});

describe("a call with the right", () => {
  const allowed = (role: Role, isRead: boolean) =>
    routes.filter((route) => {
      const { right, method } = route;
      return (
        ROLES[role].includes(right) && (method === "GET" || right === "read") === isRead && !waits(route)
      );
    });
  const send = (stage: Stage, route: Route, things: Things, role: Role) =>
    stage.call(route.method, `http://127.0.0.1${pathOf(route, things)}`, bodyOf(route, things), as(role));

  it("reads, and a reading call changes nothing", async () => {
    await using stage = await openWithKeys();
    const things = await make(stage);
    const before = await picture(stage);
    const missed = new Set<string>();
    for (const role of roles)
      for (const route of allowed(role, true)) {
        const { status } = await send(stage, route, things, role);
        expect([role, route.path, [401, 403, 500].includes(status)]).toEqual([role, route.path, false]);
        if (status >= 300) missed.add(`${route.path} ${status}`);
      }
    expect([...missed].sort()).toEqual(MISSED_READS);
    expect(await picture(stage)).toBe(before);
  });

  it("acts, and an operator's action is in the audit under the name of its key", async () => {
    const missed = new Set<string>();
    let audited = 0;
    for (const role of roles)
      for (const route of allowed(role, false)) {
        // An action may end what it acts on, so each has its own server.
        await using stage = await openWithKeys();
        const things = await make(stage, role);
        const { status } = await send(stage, route, things, role);
        const name = `${role} ${route.method} ${route.path}`;
        expect([name, [401, 403, 500].includes(status)]).toEqual([name, false]);
        if (status >= 300) missed.add(`${route.method} ${route.path} ${status}`);
        else if (isAudited(route) && !NO_CHANGE.some((path) => route.path.endsWith(path))) {
          const { items } = (await stage.call("GET", "/admin/audit?limit=5", undefined, ADMIN)).body;
          expect([name, items[0]?.actor]).toEqual([name, role]);
          audited += 1;
        }
      }
    expect([...missed].sort()).toEqual(MISSED_ACTIONS);
    expect(audited).toBeGreaterThan(40);
  });

  it("a workflow is cancelled only by a role that may cancel, and the audit has it", async () => {
    await using stage = await openWithKeys();
    const { workflow } = await make(stage);
    const by = (role: Role) => stage.call("DELETE", `/workflows/${workflow}`, undefined, as(role));
    expect([(await by("worker")).status, (await by("read-only")).status]).toEqual([403, 403]);
    expect((await by("producer")).body.state).toBe("cancelled");
    const { items } = (await stage.call("GET", "/admin/audit?limit=1", undefined, ADMIN)).body;
    expect(items).toMatchObject([{ actor: "producer", action: "workflow.cancel" }]);
  });
});
