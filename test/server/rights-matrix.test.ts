import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CallName } from "../../src/ojs/calls.ts";
import { createKey, type KeyOptions } from "../../src/server/auth.ts";
import { ROLES, type Role } from "../../src/server/roles.ts";
import { isAudited, type Route } from "../../src/server/route.ts";
import { ROUTES, STREAM_ROUTES } from "../../src/server/routes/all.ts";
import { fakeSender } from "../engine/webhook-stage.ts";
import { CALL_ARGS } from "./call-args.ts";
import { openStage, type Stage } from "./stage.ts";

/** Every route is called by every role, with ids that exist and bodies that are valid. */
const roles = Object.keys(ROLES) as Role[];
const keys = new Map(roles.map((role) => [role, createKey()]));
const as = (role: Role) => ({ Authorization: `Bearer ${keys.get(role)?.key}` });
const ADMIN = as("admin");

async function openWithKeys(): Promise<Stage> {
  const entries = roles.map(
    (role): KeyOptions => ({ name: role, role, hash: keys.get(role)?.hash as string }),
  );
  return openStage({ webhooks: { sender: fakeSender().sender } }, { keys: entries });
}

/** What a path's parameters stand for. */
interface Things {
  readonly waiting: string;
  readonly running: string;
  readonly dead: string;
  readonly workflow: string;
  readonly webhook: string;
}

const CALENDAR = { zone: "Europe/Berlin", week: { mon: "09:00-17:00" } };

/** `worker` fetches the running job: only the key that fetched a job may report on it. */
async function make(stage: Stage, worker: Role = "admin"): Promise<Things> {
  const own = ROLES[worker].includes("work") ? worker : "admin";
  const send = async (method: string, path: string, body: object) => {
    const headers = path.includes("/workers/") || path.includes("/checkpoint") ? as(own) : ADMIN;
    const answer = await stage.call(method, path, body, headers);
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const once = { queue: "dead", retry: { max_attempts: 1, on_exhaustion: "dead_letter" } };
  const dead = (await send("POST", "/jobs", { type: "a.b", args: [], options: once })).job.id;
  await send("POST", "/workers/fetch", { queues: ["dead"], worker_id: "w-1" });
  await send("POST", "/workers/nack", { job_id: dead, error: { code: "x", message: "no" } });
  const running = (await send("POST", "/jobs", { type: "a.b", args: [], options: { queue: "run" } })).job.id;
  await send("POST", "/workers/fetch", { queues: ["run"], worker_id: "w-1" });
  await send("PUT", `/jobs/${running}/checkpoint`, { state: { page: 1 } });
  const rate_limit = { key: "k", concurrency: 5 };
  const waiting = (
    await send("POST", "/jobs", { type: "a.b", args: [], options: { queue: "wait", rate_limit } })
  ).job.id;
  await send("POST", "/workers/heartbeat", { worker_id: "w-1" });
  await send("POST", "/cron", { name: "c", cron: "0 9 * * *", type: "a.b", args: [] });
  const steps = [{ type: "a.b", args: [] }];
  const workflow = (await send("POST", "/workflows", { type: "chain", steps, options: { queue: "wf" } })).id;
  await send("PUT", "/rate-limits/k/override", { concurrency: 3 });
  await send("PUT", "/admin/schemas/t/1", { schema: {}, uri: "urn:x" });
  await send("PUT", "/admin/calendars/c", CALENDAR);
  const hook = { url: "https://example.com/hook", events: ["job.failed"] };
  const webhook = (await send("POST", "/webhooks/subscriptions", hook)).id;
  return { waiting, running, dead, workflow, webhook };
}

function pathOf(
  { method, path, right }: Route,
  { waiting, running, dead, workflow, webhook }: Things,
): string {
  const id = path.includes("dead-letter")
    ? dead
    : path.includes("/workflows/")
      ? workflow
      : path.includes("/webhooks/")
        ? webhook
        : path.includes("/workers/:id")
          ? "w-1"
          : right === "work"
            ? running
            : path.includes("/retry")
              ? dead
              : waiting;
  const name = path.includes("/schemas/") ? "urn:x" : "c";
  const isNew = method === "PUT" && path.includes("/schemas/");
  const values: Record<string, string> = {
    ...{ id, name, queue: "wait", key: "k", type: "t" },
    ...(path.includes("/schemas/") && { version: isNew ? "2" : "1" }),
  };
  const filled = path.replace(/:(\w+)/g, (_all, name: string) => values[name] ?? "none");
  return filled + (path.endsWith("purge-preview") ? "?states=completed" : "");
}

const BODIES: readonly (readonly [RegExp, (things: Things) => object])[] = [
  [/calendars\/:name$/, () => CALENDAR],
  [/admin\/when$/, () => ({ when: { calendar: "c", working_days: 2 } })],
  [/\/copy$/, () => ({ type: "a.b", args: [] })],
  [/\/bulk\//, ({ waiting }) => ({ job_ids: [waiting], confirm: true })],
  [/\/dead-letter(\/retry)?$/, () => ({ filter: {}, confirm: true })],
  [/\/jobs\/batch$/, () => ({ jobs: [{ type: "a.b", args: [] }] })],
  [/ack\/batch$/, ({ running }) => ({ jobs: [{ job_id: running }] })],
  [/\/(workers|jobs)\/fetch$/, () => ({ queues: ["wait"], worker_id: "w-1" })],
  [/\/workers\/(n?ack)$/, ({ running }) => ({ job_id: running, error: { code: "x" } })],
  [/heartbeat$|\/beat$/, () => ({ worker_id: "w-1" })],
  [/\/workers\/progress$/, ({ running }) => ({ job_id: running, percentage: 5 })],
  [/\/progress$/, () => ({ progress: 0.5 })],
  [/checkpoints?(\/:id)?$/, () => ({ state: { page: 2 } })],
  [/\/logs$/, () => ({ lines: [{ message: "m" }] })],
  [/\/queues\/:queue\/jobs$/, () => ({ states: ["available"], confirm: true })],
  [/\/config$/, () => ({ concurrency: 7 })],
  [/\/queues$/, () => ({ name: "new", concurrency: 7 })],
  [/rate-limits/, () => ({ concurrency: 9 })],
  [/maintenance$/, () => ({ enabled: true })],
  [/directive$/, () => ({ directive: "quiet" })],
  [/\/cron$/, () => ({ name: "d", cron: "0 9 * * *", type: "a.b", args: [] })],
  [/crons?\/:name$/, () => ({ enabled: false })],
  [/\/webhooks\/subscriptions$/, () => ({ url: "https://example.com/other", events: ["job.failed"] })],
  [/\/webhooks\/subscriptions\/:id$/, () => ({ active: false })],
  [/\/schemas$/, () => ({ type: "n", version: 1, schema: {} })],
  [/\/schemas\/:type\/check$/, () => ({ args: [] })],
  [/\/schemas\/:type(\/:version)?$/, () => ({ schema: { maxItems: 3 }, validation: "named" })],
  [/\/workflows$/, () => ({ type: "chain", steps: [{ type: "a.b", args: [] }] })],
  [/reschedule$/, () => ({ due_at: "+PT1H" })],
  [/\/import$/, () => ({ lines: [{}], dry_run: true })],
  [/admin\/jobs\/:id$/, () => ({ priority: 3 })],
  [/\/jobs\/:id$/, () => ({ timeout_ms: 5_000 })],
  [/\/jobs$/, () => ({ type: "a.b", args: [] })],
];

function bodyOf(route: Route, things: Things): object | undefined {
  if (!route.body) return undefined;
  const [, call] = /\/calls\/(.+)$/.exec(route.path) ?? [];
  if (call) return { args: CALL_ARGS[call as CallName](things) };
  return BODIES.find(([pattern]) => pattern.test(route.path))?.[1](things) ?? {};
}

/** They wait, and virtual time stands still here; one-interface.test.ts calls them. */
const WAITING = ["jobs.result", "workflows.result", "sagas.reply", "journal.wait"];
const waits = ({ path }: Route) => WAITING.some((name) => path.endsWith(`/calls/${name}`));

const routes = ROUTES.filter((route) => !STREAM_ROUTES.includes(route) && !route.path.endsWith("/session"));

/** No timeout, no saga and no delivery of a webhook is stored, and the job has neither ended nor saved anything. */
const MISSED_READS = [
  "/ojs/v1/admin/sagas/:type/:id 404",
  "/ojs/v1/admin/timeouts/:id 404",
  "/ojs/v1/jobs/:id/checkpoint 404",
  "/ojs/v1/jobs/:id/result 409",
  "/ojs/v1/webhooks/deliveries/:id 404",
];
/** The worker lives, the queue has jobs, the job is available already, and no timeout or delivery is stored. */
const MISSED_ACTIONS = [
  "DELETE /ojs/v1/admin/workers/:id 409",
  "DELETE /ojs/v1/queues/:queue 409",
  "POST /ojs/v1/admin/jobs/:id/run 409",
  "POST /ojs/v1/admin/sagas/:type/:id/compensate 404",
  "POST /ojs/v1/admin/timeouts/:id/requeue 404",
  "POST /ojs/v1/admin/timeouts/:id/reschedule 404",
  "POST /ojs/v1/admin/timeouts/:id/revoke 404",
  "POST /ojs/v1/calls/jobs.activate 409",
  "POST /ojs/v1/calls/jobs.reschedule 409",
  "POST /ojs/v1/calls/jobs.runNow 409",
  "POST /ojs/v1/calls/timeouts.extend 409",
  "POST /ojs/v1/calls/timeouts.reschedule 404",
  "POST /ojs/v1/calls/timeouts.revive 404",
  "POST /ojs/v1/calls/timeouts.revoke 404",
  "POST /ojs/v1/jobs/:id/activate 409",
  "POST /ojs/v1/webhooks/deliveries/:id/redeliver 404",
  "POST /ojs/v1/webhooks/deliveries/:id/retry 404",
];

/** The line is not valid, nothing is there to revive, revoke or end, and no maintenance is on: nothing is written. */
const NO_CHANGE = [
  "/calls/jobs.import",
  "/calls/timeouts.requeue",
  "/calls/timeouts.revoke",
  "/calls/sagas.revoke",
  "/calls/sagas.end",
  "/calls/sagas.compensate",
  "/calls/maintenance.end",
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
    for (const route of routes) {
      if (route.right === "open") continue;
      expect([route.method, route.path, (await call(route, {})).status]).toEqual([
        route.method,
        route.path,
        401,
      ]);
      for (const role of roles) {
        if (ROLES[role].includes(route.right)) continue;
        const { status } = await call(route, as(role));
        expect([role, route.method, route.path, status]).toEqual([role, route.method, route.path, 403]);
        refused += 1;
      }
    }
    expect(refused).toBeGreaterThan(150);
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
