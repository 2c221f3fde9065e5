import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import {
  defineJob,
  defineSaga,
  type Engine,
  openEngine,
  openPostgresStore,
  processor,
  silentLogger,
  unchecked,
} from "../../src/index.ts";
import { startPgBouncer } from "../failover/pgbouncer.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { usePgBouncer } from "../support/pgbouncer-folder.ts";

const ping = defineJob({ type: "ping", payload: unchecked<number>() });
const saga = defineSaga({
  type: "counted",
  state: unchecked<{ id: string }>(),
  messages: { begun: unchecked<{ id: string }>() },
  correlate: { begun: ({ id }) => id },
  startedBy: "begun",
  start: ({ id }) => ({ id }),
  on: {},
});

let database: TestPostgres;
let watcher: pg.Client;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  watcher = new pg.Client(database.url);
  await watcher.connect();
});

afterAll(async () => {
  await watcher.end();
  await database[Symbol.asyncDispose]();
});

async function open(options: Partial<Parameters<typeof openEngine>[0]> = {}): Promise<Engine> {
  const engine = await openEngine({ store: database.url, logger: silentLogger, ...options });
  onTestFinished(() => engine.close({ drain: "0s" }));
  return engine;
}

/** Connections of curfew, and how many of them have run a statement since an instant. */
async function connections(since = new Date()): Promise<{ open: number; used: number }> {
  const { rows } = await watcher.query(
    `select count(*)::int as open, (count(*) filter (where query_start > $1))::int as used from pg_stat_activity
      where datname = current_database() and application_name = 'curfew'`,
    [since],
  );
  return rows[0];
}

describe("a producer", () => {
  it("holds two connections, and makes no statement while nobody calls it", async () => {
    const engine = await open({ role: "producer" });
    await engine.enqueue(ping, 1);
    await engine.send(saga, "begun", { id: "a" });
    await engine.timeouts.insert({ destination: "x", dueAt: "1h" });
    expect(await engine.queues.depth()).toMatchObject({ available: 1 });
    // Real time, because there is no event for what does not happen.
    const usedInSixSeconds = async () => {
      const { rows } = await watcher.query("select clock_timestamp() as now");
      await setTimeout(6_000);
      return connections(rows[0].now);
    };
    // The counts of these calls are written once, 5 s later, or later on a busy machine. Whatever comes back is found.
    await expect.poll(usedInSixSeconds, { interval: 0 }).toEqual({ open: 2, used: 0 });
  });

  it("leaves everything else to others, and says so", async () => {
    const engine = await open({ role: "producer" });
    const refused = { code: "invalid_option", field: "role" };
    expect(() => engine.work({ processors: [processor(ping, () => {})] })).toThrow(
      /role: "producer".*for work/,
    );
    expect(() => engine.host([saga])).toThrow(expect.objectContaining(refused));
    expect(() => engine.timeouts.serve("x", () => {})).toThrow(expect.objectContaining(refused));
    expect(() => engine.service).toThrow(expect.objectContaining(refused));
    await expect(openEngine({ store: database.url, role: "consumer" as never })).rejects.toMatchObject(
      refused,
    );
  });

  it("gives its jobs to a worker elsewhere at once, and waits for their results", async () => {
    const producer = await open({ role: "producer" });
    const worker = await open();
    const queue = "to-worker";
    worker.work({
      queues: { [queue]: { concurrency: 1 } },
      processors: [processor(ping, ({ payload }) => payload * 2)],
    });
    const handle = await producer.enqueue(ping, 21, { queue });
    expect(await handle.result({ within: "1m" })).toBe(42);
  });

  it("sees the settings of queues that were made while it slept", async () => {
    const producer = await open({ role: "producer" });
    const other = await open();
    const queue = "bounded";
    await producer.enqueue(ping, 1, { queue });
    await other.queues.configure(queue, { depth: { most: 1, onFull: "reject" } });
    await setTimeout(5_100);
    await expect(producer.enqueue(ping, 2, { queue })).rejects.toMatchObject({ code: "queue_full" });
  });

  it("uses a store of its own, which no other engine can use", async () => {
    const store = await openPostgresStore({ connection: database.url, role: "producer" });
    onTestFinished(() => store.close());
    await expect(openEngine({ store, logger: silentLogger })).rejects.toThrow(/opened for a producer/);
  });
});

describe("a producer behind a pooler of transactions", () => {
  const pgBouncer = usePgBouncer();

  it("enqueues, sends, requests and inspects, and leaves no setting behind", async ({ skip }) => {
    const { folder } = pgBouncer;
    if (folder === undefined) return skip();
    await using pooler = await startPgBouncer(folder, database.url, "transaction");
    // Sessions of other programs, which the producer shares.
    const others = new pg.Pool({ connectionString: pooler.url, max: 4 });
    const engine = await open({ store: pooler.url, role: "producer" });
    const queue = "pooled";
    const busy = Array.from({ length: 40 }, () => others.query("select 1"));
    const handles = await Promise.all(
      Array.from({ length: 40 }, (_, nth) => engine.enqueue(ping, nth, { queue })),
    );
    await Promise.all(busy);
    await engine.enqueueMany(ping, [1, 2, 3], { queue, unique: {} });
    await engine.send(saga, "begun", { id: "pooled" });
    await engine.timeouts.insert({ destination: "x", dueAt: "1h" });
    expect(await engine.queues.depth(queue)).toMatchObject({ available: 43 });
    expect(await handles[7]?.load()).toMatchObject({ state: "available" });
    await handles[7]?.cancel();
    const text =
      "select name, setting from pg_settings where source = 'session' and name <> 'application_name'";
    const clients = await Promise.all([1, 2, 3, 4].map(() => others.connect()));
    await Promise.all(clients.map((client) => client.query("begin")));
    const left = await Promise.all(clients.map((client) => client.query(text)));
    expect(left.flatMap(({ rows }) => rows)).toEqual([]);
    const prepared = await Promise.all(
      clients.map((client) => client.query("select name from pg_prepared_statements")),
    );
    expect(prepared.flatMap(({ rows }) => rows)).toEqual([]);
    await Promise.all(clients.map((client) => client.query("commit")));
    for (const client of clients) client.release();
    await others.end();
    await engine.close();
  });
});
