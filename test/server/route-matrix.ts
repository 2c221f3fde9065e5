import { defineSaga, unchecked } from "../../src/index.ts";
import type { CallName } from "../../src/ojs/call-names.ts";
import type { Route } from "../../src/server/route.ts";
import { CALL_ARGS } from "./call-args.ts";
import type { Stage } from "./stage.ts";

/* Calls of every route, with ids that exist and bodies that are valid. */

const CALENDAR = { zone: "Europe/Berlin", week: { mon: "09:00-17:00" }, until: "2030-12-31" };

/** What a path's parameters stand for: one id of each kind. */
export interface Things {
  readonly waiting: string;
  readonly running: string;
  readonly dead: string;
  readonly workflow: string;
  readonly webhook: string;
  readonly delivery: string;
  readonly timeout: string;
  /** The id of a saga of the type `t`. */
  readonly saga: string;
}

/** Ids of no thing. */
export const NOTHING: Things = {
  waiting: "",
  running: "",
  dead: "",
  workflow: "",
  webhook: "",
  delivery: "",
  timeout: "",
  saga: "",
};

const SAGA = defineSaga({
  type: "t",
  state: unchecked<{ readonly id: string }>(),
  messages: { begun: unchecked<{ readonly id: string }>() },
  timeouts: { late: unchecked<{ readonly id: string }>() },
  startedBy: ["begun"],
  correlate: { begun: ({ id }) => id },
  start: ({ id }, saga) => {
    saga.request("late", { hours: 1 }, { id }, { key: "k" });
    return { id };
  },
  on: {},
  onTimeout: { late: (state) => state },
});

/** How much virtual time `make` takes: until the webhook is called and the saga has begun. */
export const MAKING = "5s";

type Headers = Record<string, string>;

/**
 * Makes one of everything, within a tenant if it is named. `worker` fetches the running job: only the key that fetched a
 * job may report on it.
 */
export async function make(
  stage: Stage,
  admin: Headers,
  worker: Headers = admin,
  tenant?: string,
): Promise<Things> {
  const send = async (method: string, path: string, body: object) => {
    const headers = path.includes("/workers/") || path.includes("/checkpoint") ? worker : admin;
    const answer = await stage.call(method, path, body, headers);
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const hook = { url: "https://example.com/hook", events: ["job.failed"] };
  const webhook = (await send("POST", "/webhooks/subscriptions", hook)).id;
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
  await send("PUT", "/admin/calendars/c", CALENDAR);
  await send("PUT", "/admin/pools/c", { queues: ["pooled"] });
  await send("PUT", "/admin/schemas/t", { schema: {}, compatibility: "none" });
  const inserted = { destination: "d", dueAt: { hours: 1 } };
  const [timeout] = (await send("POST", "/calls/timeouts.insert", { args: [[inserted]] })).result;
  // No two sagas of a run have the same id, so that an id of one tenant means nothing to the other.
  const saga = `s-${waiting}`;
  const engine = tenant === undefined ? stage.engine : await stage.engine.tenant(tenant);
  const host = engine.host([SAGA]);
  await engine.send(SAGA, "begun", { id: saga });
  await stage.advance(MAKING);
  await host.close();
  const { deliveries } = (await stage.call("GET", "/webhooks/deliveries", undefined, admin)).body;
  return { waiting, running, dead, workflow, webhook, delivery: deliveries[0].id, timeout, saga };
}

/** Which id a path takes, by its beginning. The others are jobs. */
const ID_KINDS: readonly (readonly [string, (things: Things) => string])[] = [
  ["dead-letter", ({ dead }) => dead],
  ["/workflows/", ({ workflow }) => workflow],
  ["/webhooks/subscriptions/", ({ webhook }) => webhook],
  ["/webhooks/deliveries/", ({ delivery }) => delivery],
  ["/admin/timeouts/", ({ timeout }) => timeout],
  ["/admin/sagas/", ({ saga }) => saga],
  ["/workers/:id", () => "w-1"],
  ["/tenants/", () => "t-1"],
];

/** Paths whose id is that of a job. A new path with an id has to be named here or above. */
const JOB_PATHS = ["/jobs/:id", "/checkpoints/:id", "/events/:id"];

function idOf({ path, right }: Route, things: Things): string {
  if (!path.includes(":id")) return "none";
  const kind = ID_KINDS.find(([part]) => path.includes(part));
  if (kind) return kind[1](things);
  if (!JOB_PATHS.some((part) => path.includes(part)))
    throw new Error(`${path}: name what its id stands for in ID_KINDS or JOB_PATHS`);
  return right === "work" ? things.running : path.includes("/retry") ? things.dead : things.waiting;
}

export function pathOf(route: Route, things: Things): string {
  const { method, path } = route;
  const id = idOf(route, things);
  const isSchema = path.includes("/schemas/");
  const isByUri = path.endsWith("/schemas/:name") && method === "DELETE";
  const name = isByUri ? "urn:ojs:schema:t:1" : "t";
  const schema = isSchema ? { name, version: method === "PUT" ? "2" : "1" } : {};
  const names = { id, name: "c", queue: "wait", key: "k", type: "t" };
  const values: Record<string, string> = { ...names, ...schema };
  const filled = path.replace(/:(\w+)/g, (_all, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${path}: give :${name} a value`);
    return encodeURIComponent(value);
  });
  return filled + (path.endsWith("purge-preview") ? "?states=completed" : "");
}

const BODIES: readonly (readonly [RegExp, (things: Things) => object])[] = [
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
  [/\/copy$/, () => ({ type: "a.b", args: [] })],
  [/\/calendars\/:name$/, () => CALENDAR],
  [/\/pools\/:name$/, () => ({ queues: ["pooled"] })],
  [/\/when$/, () => ({ when: { calendar: "c", working_days: 1, at: "17:00" } })],
  [/\/webhooks\/subscriptions$/, () => ({ url: "https://example.com/other", events: ["job.failed"] })],
  [/\/webhooks\/subscriptions\/:id$/, () => ({ active: false })],
  [/\/schemas$/, () => ({ type: "n", version: 1, schema: {} })],
  [/\/schemas\/:(type|name)\/check$/, () => ({ args: [] })],
  [/\/schemas\/:(type|name)(\/:version)?$/, () => ({ schema: { maxItems: 3 }, validation: "named" })],
  [/\/workflows$/, () => ({ type: "chain", steps: [{ type: "a.b", args: [] }] })],
  [/\/tenants\/:id$/, () => ({ limits: { max_concurrency: 5 } })],
  [/\/tenants\/:id\/limits$/, () => ({ max_concurrency: 5 })],
  [/reschedule$/, () => ({ due_at: "+PT1H" })],
  [/\/import$/, () => ({ lines: [{}], dry_run: true })],
  [/admin\/jobs\/:id$/, () => ({ priority: 3 })],
  [/\/jobs\/:id$/, () => ({ timeout_ms: 5_000 })],
  [/\/jobs$/, () => ({ type: "a.b", args: [] })],
];

export function bodyOf(route: Route, things: Things): object | undefined {
  if (!route.body) return undefined;
  const [, call] = /\/calls\/(.+)$/.exec(route.path) ?? [];
  if (call) return { args: CALL_ARGS[call as CallName](things) };
  return BODIES.find(([pattern]) => pattern.test(route.path))?.[1](things) ?? {};
}

/** They wait, and virtual time stands still here; one-interface.test.ts calls them. */
const WAITING = ["jobs.result", "workflows.result", "sagas.reply", "journal.wait"];
export const waits = ({ path }: Route) => WAITING.some((name) => path.endsWith(`/calls/${name}`));
