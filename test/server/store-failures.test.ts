import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { type Engine, openEngine, silentLogger } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createServer } from "../../src/server/app.ts";
import type { Route } from "../../src/server/route.ts";
import { ROUTES, STREAM_ROUTES } from "../../src/server/routes/all.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { type Fault, faultyStore } from "../../src/testing/faulty-store.ts";
import { fakeSender } from "../engine/webhook-stage.ts";
import { createDatabase } from "../postgres.ts";
import { bodyOf, make, NOTHING, pathOf, type Things, waits } from "./route-matrix.ts";
import { openStage, type Stage } from "./stage.ts";

const HEALTH = "/admin/observability/health";
const routes = ROUTES.filter(
  (route) => !STREAM_ROUTES.includes(route) && !route.path.endsWith("/session") && !waits(route),
);

/** A server on virtual time, whose store fails in this way once it is told to. */
async function openFailing(
  fault: Fault,
): Promise<{ stage: Stage; things: Things; fail: (is: boolean) => void }> {
  let isFailing = false;
  const store = (clock: () => number): Store =>
    faultyStore(createMemoryStore({ clock }), () => (isFailing ? fault : undefined));
  const stage = await openStage({ store, webhooks: { sender: fakeSender().sender } });
  await stage.call("PUT", "/admin/tenants/t-1", {});
  const things = await make(stage, {});
  const fail = (is: boolean) => {
    isFailing = is;
  };
  return { stage, things, fail };
}

/** Calls a route, and lets virtual time pass until it answers. */
async function answerOf({ server, test }: Stage, route: Route, things: Things): Promise<Response | "silent"> {
  const body = bodyOf(route, things);
  const request = new Request(new URL(pathOf(route, things), "http://127.0.0.1"), {
    method: route.method,
    headers: { "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  let answered: Response | undefined;
  void Promise.resolve(server.fetch(request)).then((response) => {
    answered = response;
  });
  for (let seconds = 0; seconds < 120 && !answered; seconds++) await test.advance("1s");
  return answered ?? "silent";
}

describe("a store that fails", () => {
  it.each(["drop", "lose-reply"] as const)("is a 503 on every route and never a 500 (%s)", async (fault) => {
    const { stage, things, fail } = await openFailing(fault);
    const wrong: string[] = [];
    let unavailable = 0;
    for (const route of routes) {
      fail(true);
      const answer = await answerOf(stage, route, things);
      fail(false);
      const status = answer === "silent" ? answer : answer.status;
      if (status === 503) unavailable += 1;
      if (status === "silent" || status === 500) wrong.push(`${route.method} ${route.path} ${status}`);
    }
    await stage[Symbol.asyncDispose]();
    expect(wrong).toEqual([]);
    expect(unavailable).toBeGreaterThan(100);
  });

  it("makes the health for monitors a 503 that says so, also if it fails after the first answer", async () => {
    const { stage, fail } = await openFailing("drop");
    const { store } = stage.engine;
    const clock = store.clock.bind(store);
    store.clock = async () => {
      const now = await clock();
      fail(true);
      return now;
    };
    const { status, body } = await stage.get(HEALTH);
    fail(false);
    store.clock = clock;
    expect([status, body.status, body.backend.status]).toEqual([503, "unhealthy", "unhealthy"]);
    await stage[Symbol.asyncDispose]();
  });
});

describe("a PostgreSQL that goes away", () => {
  /** Ends all connections of a database and refuses new ones. */
  async function refuseConnections(url: string): Promise<void> {
    const name = new URL(url).pathname.slice(1);
    const client = new pg.Client({ connectionString: inject("postgresUrl") });
    await client.connect();
    await client.query(`alter database ${name} allow_connections false`);
    await client.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    await client.end();
  }

  const send = async (engine: Engine, method: string, path: string, body?: object): Promise<Response> =>
    createServer(engine).fetch(
      new Request(new URL(path, "http://127.0.0.1"), {
        method,
        headers: { "Content-Type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );

  it("still says how many connections are open when there is none left for the doctor", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    const engine = await openEngine({ store: database.url, logger: silentLogger });
    const name = new URL(database.url).pathname.slice(1);
    const client = new pg.Client({ connectionString: inject("postgresUrl") });
    await client.connect();
    // Connections that are open stay. A new one is refused, as by a server whose connections are all taken.
    await client.query(`alter database ${name} allow_connections false`);
    const health = await send(engine, "GET", `/ojs/v1${HEALTH}`);
    const doctor = await send(engine, "GET", "/ojs/v1/admin/doctor");
    await client.query(`alter database ${name} allow_connections true`);
    await client.end();
    expect([health.status, doctor.status]).toEqual([200, 200]);
    const { facts } = (await doctor.json()) as { facts: { store: { diagnosis: { postgres: object } } } };
    expect(facts.store.diagnosis.postgres).toMatchObject({ has_pooler: null });
    await engine.close({ drain: "0s" });
  });

  it("is a 503 on every route and never a 500", async () => {
    const database = await createDatabase(inject("postgresUrl"));
    const engine = await openEngine({ store: database.url, logger: silentLogger });
    await refuseConnections(database.url);
    const id = "00000000-0000-7000-8000-000000000000";
    const things: Things = {
      ...NOTHING,
      waiting: id,
      running: id,
      dead: id,
      workflow: id,
      webhook: "wh_none",
    };
    const statuses = await Promise.all(
      routes.map(async (route) => {
        const { status } = await send(engine, route.method, pathOf(route, things), bodyOf(route, things));
        return { route: `${route.method} ${route.path}`, status };
      }),
    );
    await engine.close({ drain: "0s" });
    await database[Symbol.asyncDispose]();
    expect(statuses.filter(({ status }) => status === 500)).toEqual([]);
    expect(statuses.filter(({ status }) => status === 503).length).toBeGreaterThan(100);
  });
});
