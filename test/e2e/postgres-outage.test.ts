import { chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { defineJob, type Engine, openEngine, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { type OwnPostgres, startOwnPostgres } from "../postgres.ts";

/** A server of its own, because it is killed; the tests follow each other on it. */
let server: OwnPostgres;

beforeAll(async () => {
  server = await startOwnPostgres();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const logger = silentLogger;
const ping = defineJob({ type: "ping" });
const long = defineJob({ type: "long" });
/** Everything here waits for a server that starts, on a machine that may be busy. */
const PATIENCE = { interval: 20 };

async function open(url = server.url): Promise<Engine> {
  const engine = await openEngine({ store: url, logger });
  onTestFinished(async () => engine.close({ drain: "0s" }));
  return engine;
}

describe("a PostgreSQL that goes away", () => {
  it("turns the worker unready, ends no process, and loses neither jobs nor the verdict of what ran", async () => {
    const engine = await open();
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<string>();
    const worker = engine.work({
      processors: [
        processor(ping, () => "pong"),
        processor(long, () => {
          started.resolve();
          return finish.promise;
        }),
      ],
    });
    const failed = new Set<string>();
    const stop = new AbortController();
    void (async () => {
      for await (const event of engine.events(stop.signal))
        if (event.name === "store.error") failed.add(event.during);
    })();
    const running = await engine.enqueue(long);
    await started.promise;
    expect(worker.status()).toMatchObject({ ready: true, reason: null });
    await server.kill();
    await expect.poll(() => worker.status(), PATIENCE).toMatchObject({ ready: false });
    expect(worker.status().reason).toMatch(/claims .* are failing/);
    await expect(engine.enqueue(ping)).rejects.toMatchObject({ code: "store_failed" });
    finish.resolve("done");
    await server.start();
    await expect.poll(() => worker.status(), PATIENCE).toMatchObject({ ready: true, reason: null });
    expect(await running.result({ within: "1m" })).toBe("done");
    // Not deaf: the job of another process is heard of, and run.
    const other = await open();
    expect(await (await other.enqueue(ping)).result({ within: "1m" })).toBe("pong");
    expect(failed).toContain("claim");
    stop.abort();
  });

  it("is waited for when it is down at the start", async () => {
    await server.kill();
    const opening = open();
    // A real wait: nothing happens while the server is down, so there is no event to wait for.
    const early = await Promise.race([
      opening.then(() => "opened"),
      new Promise((r) => setTimeout(r, 300, "waits")),
    ]);
    expect(early).toBe("waits");
    await server.start();
    const engine = await opening;
    await engine.enqueue(ping);
    expect((await engine.queues.depth()).available).toBe(1);
  });
});

describe("a PostgreSQL with TLS", () => {
  const folder = join(import.meta.dirname, "../support/tls");
  const file = (name: string) => encodeURIComponent(join(folder, name));

  beforeAll(async () => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>("show data_directory");
    const data = rows[0]?.data_directory as string;
    const { uid, gid } = statSync(data);
    for (const name of ["server.pem", "server-key.pem"]) {
      writeFileSync(join(data, name), readFileSync(join(folder, name)), { mode: 0o600 });
      chownSync(join(data, name), uid, gid);
    }
    await client.query("alter system set ssl_cert_file = 'server.pem'");
    await client.query("alter system set ssl_key_file = 'server-key.pem'");
    await client.query("alter system set ssl = on");
    await client.query("select pg_reload_conf()");
    await client.end();
  });

  it("is spoken to in secret, and checked, as the address says", async () => {
    const url = `${server.url}?sslmode=verify-full&sslrootcert=${file("authority.pem")}`;
    const engine = await open(url);
    await engine.enqueue(ping);
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const { rows } = await client.query<{ ssl: boolean }>(
      "select s.ssl from pg_stat_ssl s join pg_stat_activity a using (pid) where a.application_name = 'curfew'",
    );
    await client.end();
    expect(rows.length).toBeGreaterThan(1);
    expect(rows.every(({ ssl }) => ssl)).toBe(true);
  });

  it("is refused at once where its certificate is from somebody else", async () => {
    const url = `${server.url}?sslmode=verify-full&sslrootcert=${file("other-authority.pem")}`;
    await expect(openEngine({ store: url, logger })).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringMatching(/certificate/),
    });
  });
});
