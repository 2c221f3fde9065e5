import pg from "pg";
import { type ExpectStatic, inject, it, describe as series, type TestContext } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Worker } from "../../src/engine/worker/worker.ts";
import { openEngine, openPostgresStore } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { TcpProxy } from "../failover/proxy.ts";
import { createDatabase } from "../postgres.ts";

const definition = defineJob({ type: "failover.job" });

// Each test waits for its own proxy, so they wait side by side.
const describe = series.concurrent;

const serverPort = () => Number(new URL(inject("postgresUrl")).port);

/** A database of the test's own, behind a proxy that it may cut. Both are gone when the test is over. */
async function startProxy({ onTestFinished }: TestContext): Promise<{ proxy: TcpProxy; url: string }> {
  const database = await createDatabase(inject("postgresUrl"));
  onTestFinished(() => database[Symbol.asyncDispose]());
  const proxy = await TcpProxy.start(serverPort());
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return { proxy, url: proxy.through(database.url) };
}

/** An engine with a worker, and what became of it. */
interface Running {
  readonly proxy: TcpProxy;
  readonly engine: Engine;
  readonly worker: Worker;
  readonly ran: string[];
  /** How long a job takes from its enqueue while the server answers: more on a busy machine. */
  readonly usual: number;
}

/** Opens by the proxy's address, or by a pool of the user's that sets no limit at all. */
async function start(connection: "address" | "pool", context: TestContext): Promise<Running> {
  const { proxy, url } = await startProxy(context);
  let engine: Engine;
  if (connection === "address") engine = await openEngine({ store: url, logger: silentLogger });
  else {
    const pool = new pg.Pool({ connectionString: url, max: 20 });
    pool.on("error", () => {});
    context.onTestFinished(() => pool.end());
    engine = await openEngine({ store: await openPostgresStore({ connection: pool }), logger: silentLogger });
  }
  // What is registered last is closed first: the engine before its pool and its proxy.
  context.onTestFinished(() => engine.close({ drain: "0s" }));
  const ran: string[] = [];
  const worker = engine.work({ processors: [processor(definition, ({ id }) => void ran.push(id))] });
  const running = { proxy, engine, worker, ran, usual: 0 };
  await runOne(running, context);
  const again = await runOne(running, context);
  return { ...running, usual: again.ran };
}

/** A bound on real time for a machine that is as busy as this one. */
const boundOf = ({ usual }: Running, bound: number) => bound + 20 * usual;

/** Enqueues a job until the store confirms one, and waits until it ran. Returns milliseconds of both. */
async function runOne(
  { engine, ran }: Running,
  { expect }: TestContext,
): Promise<{ acknowledged: number; ran: number }> {
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

async function until(condition: () => boolean, expect: ExpectStatic): Promise<number> {
  const from = performance.now();
  await expect.poll(condition, { interval: 50 }).toBe(true);
  return performance.now() - from;
}

describe.each(["address", "pool"] as const)("a server behind one %s", (connection) => {
  it("that vanishes makes the worker unready within 10 s, and is replaced within 10 s", async (context) => {
    const { expect } = context;
    const running = await start(connection, context);
    running.proxy.vanish();
    expect(await until(() => !running.worker.status().ready, expect)).toBeLessThan(boundOf(running, 10_000));
    running.proxy.moveTo(serverPort());
    const { acknowledged, ran } = await runOne(running, context);
    expect(acknowledged).toBeLessThan(boundOf(running, 10_000));
    expect(ran).toBeLessThan(boundOf(running, 10_000));
    expect(await until(() => running.worker.status().ready, expect)).toBeLessThan(boundOf(running, 10_000));
  });

  it("that is replaced at once after it vanished is left within 10 s", async (context) => {
    const { expect } = context;
    const running = await start(connection, context);
    running.proxy.vanish();
    running.proxy.moveTo(serverPort());
    const { acknowledged, ran } = await runOne(running, context);
    expect(acknowledged).toBeLessThan(boundOf(running, 10_000));
    expect(ran).toBeLessThan(boundOf(running, 10_000));
  });

  it("that crashes is replaced within 2 s, however long it was gone", async (context) => {
    const { expect } = context;
    const running = await start(connection, context);
    running.proxy.cut();
    await until(() => !running.worker.status().ready, expect);
    // Long enough that loops rest for seconds between two tries.
    const later = running.engine.now() + 4_000;
    await until(() => running.engine.now() > later, expect);
    running.proxy.moveTo(serverPort());
    const { ran } = await runOne(running, context);
    expect(ran).toBeLessThan(boundOf(running, 2_000));
    expect(await until(() => running.worker.status().ready, expect)).toBeLessThan(boundOf(running, 2_000));
  });
});

describe("closing while the server does not answer", () => {
  it.for(["idle", "running"] as const)(
    "takes at most the drain and 5 s when the worker is %s, and leaves no socket",
    async (how, context) => {
      const { expect } = context;
      const { proxy, url } = await startProxy(context);
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
      // At most 5 s, and what a busy machine adds. A close that waits for the server takes 20 s.
      expect(performance.now() - from).toBeLessThan(12_000);
      await expect.poll(() => proxy.open).toBe(0);
    },
  );

  it("a store that is being opened gives up its sockets too", async (context) => {
    const { expect } = context;
    const { proxy, url } = await startProxy(context);
    proxy.vanish();
    await expect(openEngine({ store: url, logger: silentLogger, openWithin: "0s" })).rejects.toMatchObject({
      code: "store_failed",
    });
    await expect.poll(() => proxy.open).toBe(0);
  });
});

describe("limits that the role or the database sets", () => {
  it("do not end an opening that waits for another process to migrate", async ({ expect }) => {
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
