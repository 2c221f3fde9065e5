import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { Hint, Store } from "../../src/ports/store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const opened: Store[] = [];
const pools: pg.Pool[] = [];
let database: TestPostgres;
let schemas = 0;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  for (const pool of pools.splice(0)) await pool.end();
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

function newJob(queue = "default", delay?: "1m") {
  const definition = defineJob({ type: "test.job", queue });
  return stamp(
    prepareJob(definition, delay === undefined ? undefined : { delay }, {
      now,
      nextId,
      hash: (text) => text,
    }),
    "{}",
    nextId,
  );
}

function freshSchema(): string {
  schemas += 1;
  return `hints_${schemas}`;
}

/** A store whose enqueues and hints are watched. Its clock stands still until the test moves it. */
async function watched(schema: string) {
  const sent: string[] = [];
  const heard: Hint[] = [];
  let at = 0;
  const pool = new pg.Pool({ connectionString: database.url, max: 8 });
  pools.push(pool);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (config: { name?: string }) => unknown;
    Object.assign(client, {
      query: (config: { name?: string }) => {
        if (/^(insert|notify)/.test(config.name ?? "")) sent.push(config.name as string);
        return query(config);
      },
    });
  });
  const system = { after: realSystem.after.bind(realSystem), monotonic: () => at };
  const store = await openPostgresStore({ connection: pool, schema, system });
  opened.push(store);
  const later = (delay: number) => {
    at += delay;
  };
  return { store, sent, heard, later, listen: () => store.listen((hint) => heard.push(hint)) };
}

describe("the hint of a job that is enqueued alone", () => {
  it("travels with its commit, and other processes hear it", async () => {
    const schema = freshSchema();
    const [one, two] = [await watched(schema), await watched(schema)];
    await two.listen();
    await one.store.jobs.enqueue([newJob()], { now });
    await expect.poll(() => two.heard).toEqual([{ ready: "default" }]);
    expect(one.sent).toEqual(["insert_alike_hinted"]);
  });

  it("is sent after the commit until twenty times as long has passed as the last such commit took", async () => {
    const schema = freshSchema();
    const [one, two] = [await watched(schema), await watched(schema)];
    await two.listen();
    const slow = one.store.jobs.enqueue([newJob("a")], { now });
    one.later(10);
    await slow;
    one.later(199);
    await one.store.jobs.enqueue([newJob("b")], { now });
    await expect.poll(() => two.heard).toEqual([{ ready: "a" }, { ready: "b" }]);
    expect(one.sent).toEqual(["insert_alike_hinted", "insert_alike", "notify"]);
    one.later(1);
    await one.store.jobs.enqueue([newJob("c")], { now });
    await expect.poll(() => two.heard).toContainEqual({ ready: "c" });
    expect(one.sent.at(-1)).toBe("insert_alike_hinted");
  });

  it("is no news for its own process, which hears of it at once", async () => {
    const schema = freshSchema();
    const [one, two] = [await watched(schema), await watched(schema)];
    await one.listen();
    await one.store.jobs.enqueue([newJob()], { now });
    expect(one.sent).toEqual(["insert_alike_hinted"]);
    // Hints arrive in the order of commits, so that of the first job would be here before this one.
    await two.store.jobs.enqueue([newJob("other")], { now });
    await expect.poll(() => one.heard).toContainEqual({ ready: "other" });
    expect(one.heard).toEqual([{ ready: "default" }, { ready: "other" }]);
  });

  it("is not sent for a job that is not available, and a repeated call finds its job", async () => {
    const schema = freshSchema();
    const [one, two] = [await watched(schema), await watched(schema)];
    await two.listen();
    expect(await one.store.jobs.enqueue([newJob("later", "1m")], { now })).toEqual(["created"]);
    const again = newJob();
    expect(await one.store.jobs.enqueue([again], { now })).toEqual(["created"]);
    one.later(10_000);
    expect(await one.store.jobs.enqueue([again], { now })).toEqual(["exists"]);
    await expect.poll(() => two.heard).toEqual([{ ready: "default" }]);
    expect(one.sent).toEqual([
      "insert_alike",
      "insert_alike_hinted",
      "insert_alike_hinted",
      "insert_alike",
      "insert",
    ]);
  });
});
