import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Worker } from "../../src/engine/worker/worker.ts";
import { openEngine, openPostgresStore } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { TcpProxy } from "../failover/proxy.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const definition = defineJob({ type: "failover.job" });

let database: TestPostgres;
let proxy: TcpProxy;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

beforeEach(async () => {
  proxy = await TcpProxy.start(Number(new URL(database.url).port));
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await proxy[Symbol.asyncDispose]();
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const serverPort = () => Number(new URL(database.url).port);

/** An engine with a worker, and what became of it. */
interface Running {
  readonly engine: Engine;
  readonly worker: Worker;
  readonly ran: string[];
}

/** Opens by the proxy's address, or by a pool of the user's that sets no limit at all. */
async function start(connection: "address" | "pool"): Promise<Running> {
  let engine: Engine;
  const url = proxy.through(database.url);
  if (connection === "address") engine = await openEngine({ store: url, logger: silentLogger });
  else {
    const pool = new pg.Pool({ connectionString: url, max: 20 });
    pool.on("error", () => {});
    closing.push(() => pool.end());
    engine = await openEngine({ store: await openPostgresStore({ connection: pool }), logger: silentLogger });
  }
  closing.unshift(() => engine.close({ drain: "0s" }));
  const ran: string[] = [];
  const worker = engine.work({ processors: [processor(definition, ({ id }) => void ran.push(id))] });
  await runOne({ engine, worker, ran });
  return { engine, worker, ran };
}

/** Enqueues a job until the store confirms one, and waits until it ran. Returns milliseconds of both. */
async function runOne({ engine, ran }: Running): Promise<{ acknowledged: number; ran: number }> {
  const from = performance.now();
  let id: string | undefined;
  while (id === undefined) {
    id = await engine.enqueue(definition, undefined).then(
      (handle) => handle.id,
      () => undefined,
    );
  }
  const acknowledged = performance.now() - from;
  await expect.poll(() => ran, { interval: 20 }).toContain(id);
  return { acknowledged, ran: performance.now() - from };
}

async function until(condition: () => boolean): Promise<number> {
  const from = performance.now();
  await expect.poll(condition, { interval: 50 }).toBe(true);
  return performance.now() - from;
}

describe.each(["address", "pool"] as const)("a server behind one %s", (connection) => {
  it("that vanishes makes the worker unready within 10 s, and is replaced within 10 s", async () => {
    const running = await start(connection);
    proxy.vanish();
    expect(await until(() => !running.worker.status().ready)).toBeLessThan(10_000);
    proxy.moveTo(serverPort());
    const { acknowledged, ran } = await runOne(running);
    expect(acknowledged).toBeLessThan(10_000);
    expect(ran).toBeLessThan(10_000);
    expect(await until(() => running.worker.status().ready)).toBeLessThan(10_000);
  });

  it("that is replaced at once after it vanished is left within 10 s", async () => {
    const running = await start(connection);
    proxy.vanish();
    proxy.moveTo(serverPort());
    const { acknowledged, ran } = await runOne(running);
    expect(acknowledged).toBeLessThan(10_000);
    expect(ran).toBeLessThan(10_000);
  });

  it("that crashes is replaced within 2 s, however long it was gone", async () => {
    const running = await start(connection);
    proxy.cut();
    await until(() => !running.worker.status().ready);
    // Long enough that loops rest for seconds between two tries.
    const later = running.engine.now() + 4_000;
    await until(() => running.engine.now() > later);
    proxy.moveTo(serverPort());
    const { ran } = await runOne(running);
    expect(ran).toBeLessThan(2_000);
    expect(await until(() => running.worker.status().ready)).toBeLessThan(2_000);
  });
});

describe("closing while the server does not answer", () => {
  it.each(["idle", "running"] as const)(
    "takes at most the drain and 5 s when the worker is %s, and leaves no socket",
    async (how) => {
      const url = proxy.through(database.url);
      const engine = await openEngine({ store: url, logger: silentLogger });
      const entered = Promise.withResolvers<void>();
      const run = async ({ signal }: { signal: AbortSignal }) => {
        entered.resolve();
        if (how === "running") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      };
      engine.work({ processors: [processor(definition, run)] });
      await engine.enqueue(definition, undefined);
      await entered.promise;
      proxy.vanish();
      const from = performance.now();
      await engine.close({ drain: "0s" });
      expect(performance.now() - from).toBeLessThan(5_000);
      await expect.poll(() => proxy.open).toBe(0);
    },
  );

  it("a store that is being opened gives up its sockets too", async () => {
    proxy.vanish();
    const url = proxy.through(database.url);
    await expect(openEngine({ store: url, logger: silentLogger, openWithin: "0s" })).rejects.toMatchObject({
      code: "store_failed",
    });
    await expect.poll(() => proxy.open).toBe(0);
  });
});

describe("limits that the role or the database sets", () => {
  it("do not end an opening that waits for another process to migrate", async () => {
    await using limited = await createDatabase(inject("postgresUrl"));
    const name = new URL(limited.url).pathname.slice(1);
    const admin = new pg.Client({ connectionString: limited.url });
    await admin.connect();
    try {
      await admin.query(`alter database ${name} set statement_timeout = '100ms'`);
      await admin.query("set statement_timeout = 0");
      await admin.query("select pg_advisory_lock(7239405611)");
      const opening = openPostgresStore({ connection: limited.url });
      opening.catch(() => {});
      const waiting = `select 1 from pg_locks l join pg_stat_activity a using (pid)
        where l.locktype = 'advisory' and not l.granted and a.datname = current_database()
          and clock_timestamp() - a.query_start > interval '0.3 s'`;
      const read = async () => (await admin.query(waiting)).rows.length;
      await Promise.race([expect.poll(read, { interval: 50 }).toBe(1), opening]);
      await admin.query("select pg_advisory_unlock(7239405611)");
      await (await opening).close();
    } finally {
      await admin.end();
    }
  });
});
