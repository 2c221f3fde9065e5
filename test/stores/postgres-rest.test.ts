import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import {
  defineJob,
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

async function connections(): Promise<number> {
  const { rows } = await watcher.query(
    "select count(*)::int as count from pg_stat_activity where datname = current_database() and application_name = 'curfew'",
  );
  return rows[0].count;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Timers that close unused connections, fire when the test says so. */
function impatientSystem() {
  const waiting = new Set<() => void>();
  const after: typeof realSystem.after = (delay, callback, options) => {
    if (delay !== 15_000) return realSystem.after(delay, callback, options);
    waiting.add(callback);
    return { cancel: () => waiting.delete(callback) };
  };
  return {
    after,
    monotonic: () => realSystem.monotonic(),
    quarterMinute() {
      for (const callback of [...waiting]) {
        waiting.delete(callback);
        callback();
      }
    },
  };
}

describe("connections of a store at rest", () => {
  it("are closed when nothing used them for a while, and opened again when they are needed", async () => {
    const system = impatientSystem();
    const store = await openPostgresStore({ connection: database.url, system: system as never });
    onTestFinished(() => store.close());
    const listening = await store.listen(() => {});
    const now = await store.clock();
    const queues = ["default"];
    const look = () => store.look({ queues, destinations: [], records: [] });
    const claim = () =>
      store.jobs.claim({ queue: "default", limit: 1, now, lease: 10_000, salt: 1, worker: "w", from: 0 });
    // Enough at once that every group needs a connection of its own.
    const busy = () =>
      Promise.all([...Array.from({ length: 8 }, claim), store.clock(), store.clock(), look()]);
    await busy();
    await until(async () => (await connections()) >= 4);
    system.quarterMinute();
    await Promise.all([store.clock(), look()]);
    system.quarterMinute();
    await until(async () => (await connections()) === 2);
    await busy();
    expect(await connections()).toBeGreaterThan(2);
    await listening[Symbol.asyncDispose]();
  });

  it("a claim after a rest does not wait for a new connection", async () => {
    const system = impatientSystem();
    let connects = 0;
    const over = Promise.withResolvers<never>();
    over.promise.catch(() => {});
    const pool = new pg.Pool({ connectionString: database.url, max: 8 });
    onTestFinished(() => pool.end());
    const slow = {
      options: pool.options,
      connect: async () => {
        connects += 1;
        if (connects > 5) await over.promise;
        return pool.connect();
      },
    };
    const store = await openPostgresStore({ connection: slow as never, system: system as never });
    onTestFinished(() => store.close());
    const now = await store.clock();
    // Two connects found out that there is no pooler, one inspects, one writes: no further one succeeds.
    connects = 5;
    const claim = () =>
      store.jobs.claim({ queue: "default", limit: 1, now, lease: 10_000, salt: 1, worker: "w", from: 0 });
    for (let nth = 0; nth < 3; nth++) expect(await claim()).toEqual([]);
    expect(connects).toBe(5);
    expect(await claim()).toEqual([]);
    expect(connects).toBe(6);
    over.reject(new Error("the test is over"));
  });
});

describe("a worker behind a pooler of transactions", () => {
  const pgBouncer = usePgBouncer();

  it("needs a direct address for hints, and works with one as it does without a pooler", async ({ skip }) => {
    const { folder } = pgBouncer;
    if (folder === undefined) return skip();
    await using pooler = await startPgBouncer(folder, database.url, "transaction");
    const open = (hints?: string) =>
      openEngine({ store: pooler.url, logger: silentLogger, ...(hints !== undefined && { hints }) });
    await expect(open()).rejects.toThrow(/hints: "postgres:/);
    await expect(open(pooler.url)).rejects.toThrow(/hints: .*pooler of transactions too/);
    await using elsewhere = await createDatabase(inject("postgresUrl"));
    await expect(open(elsewhere.url)).rejects.toThrow(/hints: .*another database/);
    const engine = await open(database.url);
    const producer = await openEngine({ store: pooler.url, role: "producer", logger: silentLogger });
    const queue = "pooled";
    engine.work({
      queues: { [queue]: { concurrency: 5 } },
      processors: [processor(ping, ({ payload }) => payload * 2)],
    });
    await engine.queues.configure(queue, { concurrency: 3 });
    const handles = await producer.enqueueMany(
      ping,
      Array.from({ length: 30 }, (_, nth) => nth),
      { queue },
    );
    const results = await Promise.all(handles.map((handle) => handle.result({ within: "1m" })));
    expect(results).toEqual(Array.from({ length: 30 }, (_, nth) => nth * 2));
    const delayed = await producer.enqueue(ping, 4, {
      queue,
      delay: "50ms",
      limit: { key: "k", concurrency: 1 },
    });
    expect(await delayed.result({ within: "1m" })).toBe(8);
    const others = new pg.Pool({ connectionString: pooler.url, max: 10 });
    const clients = await Promise.all(Array.from({ length: 10 }, () => others.connect()));
    await Promise.all(clients.map((client) => client.query("begin")));
    const text = "select name from pg_settings where source = 'session' and name <> 'application_name'";
    const left = await Promise.all(clients.map((client) => client.query(text)));
    expect(left.flatMap(({ rows }) => rows)).toEqual([]);
    await Promise.all(clients.map((client) => client.query("commit")));
    for (const client of clients) client.release();
    await Promise.all([others.end(), engine.close({ drain: "0s" }), producer.close()]);
  });

  it("refuses an address for hints that nothing would use", async () => {
    const refused = { code: "invalid_option", field: "hints" };
    await expect(openEngine({ store: "memory:", hints: database.url })).rejects.toMatchObject(refused);
    await expect(openEngine({ store: database.url, hints: "localhost" })).rejects.toMatchObject(refused);
  });
});
