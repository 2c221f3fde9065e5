import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Hint, Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { LISTENER_SETTINGS } from "../../src/stores/postgres/connections.ts";
import { FAIR_KEYS, TAKE_FAIR } from "../../src/stores/postgres/fair-statements.ts";
import { MIGRATIONS } from "../../src/stores/postgres/migrations.ts";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/stores/postgres/postgres-store.ts";
import { CLAIM } from "../../src/stores/postgres/statements.ts";
import { compareStores } from "../../src/testing/compare-stores.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const definition = defineJob({ type: "test.job" });

function newJob() {
  return stamp(prepareJob(definition, undefined, { now, nextId, hash: (text) => text }), "{}", nextId);
}

let database: TestPostgres;
let admin: pg.Pool;
let schemas = 0;
const opened: Store[] = [];

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  admin = new pg.Pool({ connectionString: database.url, max: 2 });
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

afterAll(async () => {
  await admin.end();
  await database[Symbol.asyncDispose]();
});

function freshSchema(): string {
  schemas += 1;
  return `store_${schemas}`;
}

async function open(options: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  const store = await openPostgresStore({
    connection: database.url,
    schema: freshSchema(),
    system: realSystem,
    ...options,
  });
  opened.push(store);
  return store;
}

const claim = { queue: "default", limit: 10, now, lease: 10_000, salt: 1, worker: "worker-1", from: 0 };

async function available(store: Store): Promise<number> {
  return (await depthOf(store)).available;
}

describe("opening", () => {
  it("migrates once when many processes open an empty schema at the same time", async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3, 4].map(() => open({ schema })));
    await stores[0]?.jobs.enqueue([newJob()], { now });
    expect(await stores[3]?.jobs.claim(claim)).toHaveLength(1);
    const { rows } = await admin.query(`select version from ${schema}.migrations`);
    expect(rows).toEqual(MIGRATIONS.map(({ version }) => ({ version })));
  });

  it("refuses a schema that newer code has made", async () => {
    const schema = freshSchema();
    await open({ schema });
    await admin.query(
      `insert into ${schema}.migrations (version, name, checksum, applied_at) values (99, 'future', 'x', now())`,
    );
    await expect(open({ schema })).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringContaining("version 99"),
    });
  });

  it("refuses a schema whose migrations had another text", async () => {
    const schema = freshSchema();
    await open({ schema });
    await admin.query(`update ${schema}.migrations set checksum = 'other'`);
    await expect(open({ schema })).rejects.toMatchObject({
      message: expect.stringContaining("another text"),
    });
  });

  it.each(["", "Upper", "1st", "a-b", 'a"; drop schema public', "pg_mine", "x".repeat(64)])(
    "refuses the schema name %j",
    async (schema) => {
      await expect(open({ schema })).rejects.toMatchObject({ code: "invalid_name" });
    },
  );

  it("opens a schema whose name is a word of SQL", async () => {
    const store = await open({ schema: "user" });
    await store.jobs.enqueue([newJob()], { now });
    expect(await store.jobs.claim(claim)).toHaveLength(1);
  });

  it("refuses a database that forgets acknowledged writes", async () => {
    const forgetful = await createDatabase(inject("postgresUrl"));
    try {
      await admin.query(
        `alter database ${new URL(forgetful.url).pathname.slice(1)} set synchronous_commit = off`,
      );
      await expect(open({ connection: forgetful.url })).rejects.toMatchObject({
        message: expect.stringContaining("synchronous_commit"),
      });
    } finally {
      await forgetful[Symbol.asyncDispose]();
    }
  });

  it("says that the server did not answer when there is none", async () => {
    await expect(open({ connection: "postgres://127.0.0.1:1/none" })).rejects.toMatchObject({
      code: "store_failed",
    });
  });

  it("keeps engines apart that share a database and have schemas of their own", async () => {
    const [one, two] = [await open(), await open()];
    const hints: Hint[] = [];
    await two.listen((hint) => hints.push(hint));
    const [mine, theirs] = [newJob(), newJob()];
    await one.jobs.enqueue([mine], { now });
    expect(await two.jobs.claim(claim)).toEqual([]);
    await two.jobs.enqueue([{ ...theirs, id: mine.id }], { now });
    expect(await two.jobs.claim(claim)).toHaveLength(1);
    expect(await one.jobs.load([mine.id])).toMatchObject([{ state: "available" }]);
    // The hint of its own enqueue comes; that of the other, which was first, does not.
    await expect.poll(() => hints.length).toBeGreaterThan(0);
    expect(hints).toEqual([{ ready: "default" }]);
  });

  it("says what to do where its role may not make the tables", async () => {
    const role = `poor_${new URL(database.url).pathname.slice(1)}`;
    await admin.query(`create role ${role} login password 'poor'`);
    const url = new URL(database.url);
    [url.username, url.password] = [role, "poor"];
    await expect(open({ connection: url.href })).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringMatching(/this role cannot migrate schema "store_\d+".*curfew migrate/),
    });
    await admin.query(`drop role ${role}`);
  });

  it("runs with a role that may use the tables and not create any", async () => {
    const schema = freshSchema();
    await open({ schema });
    // Roles belong to the whole server, which may outlive this run.
    const role = `lowly_${new URL(database.url).pathname.slice(1)}`;
    await admin.query(`
      create role ${role} login password 'lowly';
      grant usage on schema ${schema} to ${role};
      grant select, insert, update, delete on all tables in schema ${schema} to ${role}`);
    const url = new URL(database.url);
    [url.username, url.password] = [role, "lowly"];
    const store = await open({ schema, connection: url.href });
    await store.jobs.enqueue([newJob()], { now });
    expect(await store.jobs.claim(claim)).toHaveLength(1);
  });
});

describe("a caller's pool", () => {
  it("is used, left open, and gets no client back that the store has changed", async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 8 });
    const store = await open({ connection: pool });
    await store.jobs.enqueue([newJob()], { now });
    expect(await store.jobs.claim(claim)).toHaveLength(1);
    await store.close();
    const { rows } = await pool.query("select current_setting('enable_seqscan') as value");
    expect(rows).toEqual([{ value: "on" }]);
    await pool.end();
  });

  it("a statement to a caller's pool has less than 5 MB", async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 8 });
    let largest = 0;
    const measuring = {
      async connect() {
        const client = await pool.connect();
        const query = client.query.bind(client) as (config: { values?: unknown[] }) => Promise<never>;
        return Object.assign(client, {
          query(config: { values?: unknown[] }) {
            const size = (config.values ?? []).reduce((sum: number, value) => sum + String(value).length, 0);
            largest = Math.max(largest, size);
            return query(config);
          },
        });
      },
    };
    const store = await open({ connection: measuring as never });
    const jobs = Array.from({ length: 12 }, () => ({ ...newJob(), payload: `"${"x".repeat(1_000_000)}"` }));
    // Jobs off one template and others go by different statements.
    const others = jobs.map((job) => ({ ...job, id: nextId(), hasNewId: false }));
    expect(await store.jobs.enqueue([...jobs, ...others], { now })).toEqual(
      [...jobs, ...others].map(() => "created"),
    );
    const documents = { progress: `"${"y".repeat(1_000_000)}"` };
    const units = jobs.map(({ id }) => ({ job: { id, fence: 0, documents } }));
    expect(await store.commit(units, { now })).toEqual(units.map(() => ({ ok: true })));
    expect(largest).toBeGreaterThan(2_000_000);
    expect(largest).toBeLessThan(5_000_000);
    await store.close();
    await pool.end();
  });

  it("is refused when it is too small for the store", async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 });
    await expect(open({ connection: pool })).rejects.toMatchObject({ code: "invalid_option" });
    await pool.end();
  });

  it("may have changed how the whole process reads values", async () => {
    const store = await open();
    const [parseLong, parseShort] = [pg.types.getTypeParser(20), pg.types.getTypeParser(23)];
    pg.types.setTypeParser(20, (text) => BigInt(text));
    pg.types.setTypeParser(23, (text) => `int ${text}`);
    try {
      const job = newJob();
      await store.jobs.enqueue([job], { now });
      const [row] = await store.jobs.claim(claim);
      expect(row).toMatchObject({ id: job.id, createdAt: now, rev: 1, attempt: 0 });
    } finally {
      pg.types.setTypeParser(20, parseLong);
      pg.types.setTypeParser(23, parseShort);
    }
  });
});

describe("a caller's transaction", () => {
  it("takes an enqueue and a commit with it when it is rolled back", async () => {
    const store = await open();
    const kept = newJob();
    await store.jobs.enqueue([kept], { now });
    const [row] = await store.jobs.claim(claim);
    const client = await admin.connect();
    await client.query("begin");
    const lost = newJob();
    expect(await store.jobs.enqueue([lost], { now, tx: client })).toEqual(["created"]);
    const job = { id: kept.id, fence: row?.fence ?? 0 };
    const effects = [{ put: ["kit", "a"], body: 1, wakeAt: null } as const, { event: 1 }];
    expect(await store.commit([{ job: { ...job, drop: true }, effects }], { now, tx: client })).toEqual([
      { ok: true },
    ]);
    await client.query("rollback");
    client.release();
    expect(await store.jobs.load([lost.id, kept.id])).toEqual([null, row]);
    expect(await store.records.load([["kit", "a"]])).toEqual([null]);
  });

  it("stays usable after a unit in it was refused, and its hints travel with its commit", async () => {
    const schema = freshSchema();
    const [store, other] = [await open({ schema }), await open({ schema })];
    const hints: Hint[] = [];
    await other.listen((hint) => hints.push(hint));
    const client = await admin.connect();
    await client.query("begin");
    const when = [{ record: ["kit", "a"], version: 3 } as const];
    const effects = [{ put: ["kit", "b"], body: 1, wakeAt: null } as const];
    const outcomes = await store.commit([{ when, effects }], { now, tx: client });
    expect(outcomes).toEqual([{ ok: false, because: "conflict", at: null }]);
    await store.jobs.enqueue([newJob()], { now, tx: client });
    expect(await available(store)).toBe(0);
    await client.query("commit");
    client.release();
    expect(await available(store)).toBe(1);
    await expect.poll(() => hints).toEqual([{ ready: "default" }]);
  });

  it("is refused when it is no client", async () => {
    const store = await open();
    await expect(store.jobs.enqueue([newJob()], { now, tx: {} })).rejects.toMatchObject({
      code: "invalid_option",
    });
  });
});

describe("connections", () => {
  async function killAll(): Promise<void> {
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'curfew' and datname = current_database()",
    );
  }

  it("the next call opens lost connections again", async () => {
    const store = await open();
    for (let round = 0; round < 3; round++) {
      await store.jobs.enqueue([newJob()], { now });
      const [row] = await store.jobs.claim(claim);
      const job = { id: row?.id ?? "", fence: row?.fence ?? 0, drop: true as const };
      expect(await store.commit([{ job }], { now })).toEqual([{ ok: true }]);
      await depthOf(store);
      await killAll();
      // The ends of the connections are heard in their own time; a call that comes first fails and is not repeated.
      await expect.poll(() => store.clock().catch(() => 0)).toBeGreaterThan(0);
      await expect.poll(() => available(store).catch(() => -1)).toBe(0);
      await expect.poll(() => store.jobs.claim(claim).catch(() => null)).toEqual([]);
      await expect.poll(() => store.jobs.enqueue([], { now }).catch(() => null)).toEqual([]);
    }
  });

  it("a lost connection fails the calls it was busy with, and nothing else", async () => {
    const store = await open();
    await store.clock();
    const blocker = await admin.connect();
    await blocker.query("begin");
    const job = newJob();
    await store.jobs.enqueue([job], { now });
    const schema = `store_${schemas}`;
    await blocker.query(`select 1 from ${schema}.jobs for update`);
    const stuck = store.commit([{ job: { id: job.id, fence: 0, drop: true } }], { now });
    const failed = expect(stuck).rejects.toMatchObject({ code: "store_failed" });
    const waiting =
      "select 1 from pg_stat_activity where application_name = 'curfew' and wait_event_type = 'Lock'";
    await expect.poll(async () => (await admin.query(waiting)).rows.length).toBe(1);
    await killAll();
    await failed;
    await blocker.query("rollback");
    blocker.release();
    expect(await store.jobs.load([job.id])).toMatchObject([{ state: "available" }]);
  });

  it("are not lost over nonsense that somebody sends on the channel", async () => {
    const store = await open();
    const hints: Hint[] = [];
    await store.listen((hint) => hints.push(hint));
    const { rows } = await admin.query<{ query: string }>(
      "select query from pg_stat_activity where query like 'listen curfew_%' and datname = current_database()",
    );
    for (const { query } of rows) await admin.query(`notify ${query.slice("listen ".length)}, 'nonsense'`);
    expect(rows.length).toBeGreaterThan(0);
    await store.jobs.enqueue([newJob()], { now });
    await expect.poll(() => hints).toEqual([{ ready: "default" }]);
  });

  it("a listener receives hints again after its connection is lost", async () => {
    const schema = freshSchema();
    const [store, other] = [await open({ schema }), await open({ schema })];
    const hints: Hint[] = [];
    await other.listen((hint) => hints.push(hint));
    await killAll();
    const hintsAfterEnqueue = async () => {
      await store.jobs.enqueue([newJob()], { now }).catch(() => []);
      return hints.length;
    };
    await expect.poll(hintsAfterEnqueue).toBeGreaterThan(0);
  });
});

describe("events", () => {
  const telling = () => ({ ...newJob(), records: { event: "enqueued" } });

  /** A transaction that has written something, so that it has a place before all that is committed later. */
  async function beginWriting(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("begin; select pg_current_xact_id()");
    return client;
  }

  it("committed events wait for an older transaction of the same database, and the page says so", async () => {
    const store = await open();
    const older = await beginWriting(database.url);
    try {
      await store.jobs.enqueue([telling()], { now });
      const held = { events: [], cursors: [], cursor: null, isIncomplete: true };
      expect(await store.inspect.events(null, 10)).toEqual(held);
      expect(await store.inspect.latestEvents(10)).toEqual(held);
      await older.query("commit");
      const { events, isIncomplete } = await store.inspect.events(null, 10);
      expect(events).toEqual(["enqueued"]);
      expect(isIncomplete).toBeUndefined();
    } finally {
      await older.end();
    }
  });

  it("events do not wait for a transaction of another database", async () => {
    const store = await open();
    await using other = await createDatabase(inject("postgresUrl"));
    const foreign = await beginWriting(other.url);
    try {
      await store.jobs.enqueue([telling()], { now });
      const { events, isIncomplete } = await store.inspect.events(null, 10);
      expect(events).toEqual(["enqueued"]);
      expect(isIncomplete).toBeUndefined();
    } finally {
      await foreign.end();
    }
  });

  it("an acknowledged event is among the latest as soon as the older transaction ends", async () => {
    await using engine = await openEngine({ store: database.url, events: "durable", logger: silentLogger });
    const older = await beginWriting(database.url);
    try {
      const { id } = await engine.enqueue(definition, undefined);
      const reading = engine.journal.latest({ job: id });
      await older.query("commit");
      expect((await reading).events.map(({ name }) => name)).toEqual(["job.enqueued"]);
    } finally {
      await older.end();
    }
  });
});

describe("claims from a fair queue", () => {
  /** The indexes that a prepared statement reads, as the connections of the store plan it. */
  async function indexesOf(schema: string, text: string, values: string): Promise<string[]> {
    const client = new pg.Client(database.url);
    await client.connect();
    try {
      await client.query(LISTENER_SETTINGS);
      await client.query(`prepare planned as ${text.replaceAll("curfew.", `${schema}.`)}`);
      const { rows } = await client.query(`explain execute planned(${values})`);
      return rows.flatMap((row) => /using (jobs_\w+)/.exec(row["QUERY PLAN"])?.[1] ?? []);
    } finally {
      await client.end();
    }
  }

  it("read the index of keys, also before the server has statistics", async () => {
    const schema = freshSchema();
    const store = await open({ schema });
    // Many jobs of one key: the index of all ready jobs would be read over all of them for each other key.
    const jobs = Array.from({ length: 1_000 }, () => ({ ...newJob(), fairKey: "a" }));
    await store.jobs.enqueue(jobs, { now });
    const keys = await indexesOf(schema, FAIR_KEYS.text, "'default', 0, 'a', true, 10");
    const taken = await indexesOf(
      schema,
      TAKE_FAIR.text,
      "'default', 0, 0, 1, 0, 'w', 1, 1, '{b}', '{1}', 9",
    );
    // Once each: for the best job of the queue, and for jobs without a key.
    for (const indexes of [keys, taken]) {
      expect(indexes).toContain("jobs_fair");
      expect(indexes.filter((name) => name === "jobs_ready")).toHaveLength(1);
    }
  });

  it("cost a queue that is not fair nothing: its jobs are not in the index of keys, and its claim is one statement", async () => {
    const schema = freshSchema();
    const store = await open({ schema });
    const plain = Array.from({ length: 1_000 }, newJob);
    const sizeOfIndex = async () =>
      Number((await admin.query(`select pg_relation_size('${schema}.jobs_fair') as size`)).rows[0].size);
    const empty = await sizeOfIndex();
    await store.jobs.enqueue(plain, { now });
    expect(await sizeOfIndex()).toBe(empty);
    await store.jobs.enqueue(
      plain.map(() => ({ ...newJob(), fairKey: "a" })),
      { now },
    );
    expect(await sizeOfIndex()).toBeGreaterThan(empty);
    const ofClaims = [CLAIM, FAIR_KEYS, TAKE_FAIR].map(({ text }) =>
      text.split("returning")[0]?.includes("fair_key"),
    );
    expect(ofClaims).toEqual([false, true, true]);
  });
});

describe("random operations", () => {
  it.each([1, 2, 3])("are answered as by the memory store, seed %i", async (seed) => {
    await compareStores({
      seed,
      steps: 150,
      model: async () => createMemoryStore({ clock: () => now }),
      subject: () => open(),
    });
  });
});
