import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openEngine, openPostgresStore } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { addressesOf } from "../../src/stores/postgres/dial.ts";
import { type Cluster, startCluster } from "../failover/cluster.ts";
import { startPgBouncer } from "../failover/pgbouncer.ts";
import { TcpProxy } from "../failover/proxy.ts";
import { createDatabase } from "../postgres.ts";
import { usePgBouncer } from "../support/pgbouncer-folder.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const definition = defineJob({ type: "standby.job" });

function newJob() {
  return stamp(prepareJob(definition, undefined, { now, nextId, hash: (text) => text }), "{}", nextId);
}

describe("a primary with a synchronous standby", () => {
  let cluster: Cluster;
  let proxy: TcpProxy;

  beforeAll(async () => {
    cluster = await startCluster({ synchronous: true });
    proxy = await TcpProxy.start(cluster.primary.port);
  });

  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it("an address that shows the standby for a moment is written to again afterwards", async () => {
    await using engine = await openEngine({
      store: proxy.through(cluster.primary.url),
      logger: silentLogger,
    });
    await engine.enqueue(definition, undefined);
    proxy.cut();
    proxy.moveTo(cluster.standby.port);
    const refused = await engine.enqueue(definition, undefined).catch((error: Error) => error);
    expect((refused as Error).cause).toMatchObject({ message: expect.stringContaining("standby") });
    // Connections to the standby stay open: nothing but the store itself can leave them.
    proxy.moveTo(cluster.primary.port);
    await expect
      .poll(() =>
        engine.enqueue(definition, undefined).then(
          () => "created",
          () => "refused",
        ),
      )
      .toBe("created");
  });

  it("a commit whose wait for the standby is cancelled is not acknowledged", async () => {
    const store = await openPostgresStore({ connection: cluster.primary.url });
    try {
      await store.jobs.enqueue([newJob()], { now });
      await cluster.standby.freeze();
      const enqueued = store.jobs.enqueue([newJob()], { now });
      const refused = expect(enqueued).rejects.toMatchObject({
        code: "store_failed",
        message: expect.stringContaining("synchronous standby"),
      });
      const cancel = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
      await expect.poll(async () => (await cluster.primary.query(cancel)).length).toBe(1);
      await refused;
    } finally {
      await cluster.standby.thaw();
      await store.close();
    }
  });

  it("several hosts in the address are tried until one takes writes", async () => {
    const { password } = new URL(cluster.primary.url);
    const hosts = `127.0.0.1:1,127.0.0.1:${cluster.standby.port},127.0.0.1:${cluster.primary.port}`;
    const store = `postgres://postgres:${password}@${hosts}/postgres?target_session_attrs=read-write`;
    await using engine = await openEngine({ store, logger: silentLogger });
    expect((await engine.enqueue(definition, undefined)).id).toEqual(expect.any(String));
  });

  it("an opening on the standby waits until it is promoted", async () => {
    const opening = openEngine({ store: cluster.standby.url, logger: silentLogger });
    opening.catch(() => {});
    const sessions = "select 1 from pg_stat_activity where application_name = 'curfew'";
    await Promise.race([
      expect
        .poll(async () => (await cluster.standby.query(sessions)).length, { interval: 10 })
        .toBeGreaterThan(0),
      opening,
    ]);
    await cluster.primary.kill();
    await cluster.promote();
    await using engine = await opening;
    expect((await engine.enqueue(definition, undefined)).id).toEqual(expect.any(String));
  });
});

describe("an address with several hosts", () => {
  it.each([
    ["postgres://u:p@one/db", ["postgres://u:p@one/db"]],
    [
      "postgres://u:p%40@one:1,two:2/db?sslmode=require",
      ["postgres://u:p%40@one:1/db?sslmode=require", "postgres://u:p%40@two:2/db?sslmode=require"],
    ],
    ["postgresql://[::1],two?target_session_attrs=primary", ["postgresql://[::1]", "postgresql://two"]],
    ["postgres:///db?host=/run/postgresql", ["postgres:///db?host=/run/postgresql"]],
  ])("%s", (address, addresses) => {
    expect(addressesOf(address)).toEqual(addresses);
  });

  it.each(["postgres://one,,two/db", "postgres://one/db?target_session_attrs=standby"])(
    "refuses %s",
    (address) => {
      expect(() => addressesOf(address)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    },
  );
});

describe("a pooler", () => {
  const pgBouncer = usePgBouncer();

  it("of transactions is refused, and keeps no setting of the store", async ({ skip }) => {
    const { folder } = pgBouncer;
    if (folder === undefined) return skip();
    await using database = await createDatabase(inject("postgresUrl"));
    await using pooler = await startPgBouncer(folder, database.url, "transaction");
    // Sessions that other programs have used.
    const others = new pg.Pool({ connectionString: pooler.url, max: 4 });
    const clients = await Promise.all([1, 2, 3, 4].map(() => others.connect()));
    await Promise.all(clients.map((client) => client.query("begin; select 1")));
    await Promise.all(clients.map((client) => client.query("commit")));
    await expect(openPostgresStore({ connection: pooler.url })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("pool_mode = session"),
    });
    const text = "select name from pg_settings where source = 'session' and name <> 'application_name'";
    await Promise.all(clients.map((client) => client.query("begin")));
    const left = await Promise.all(clients.map((client) => client.query(text)));
    expect(left.flatMap(({ rows }) => rows)).toEqual([]);
    await Promise.all(clients.map((client) => client.query("commit")));
    for (const client of clients) client.release();
    await others.end();
  });

  it("of sessions is used like the server itself", async ({ skip }) => {
    const { folder } = pgBouncer;
    if (folder === undefined) return skip();
    await using database = await createDatabase(inject("postgresUrl"));
    await using pooler = await startPgBouncer(folder, database.url, "session");
    const store = await openPostgresStore({ connection: pooler.url });
    expect(await store.jobs.enqueue([newJob()], { now })).toEqual(["created"]);
    await store.close();
  });
});
