import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import { type JobRow, rankOf } from "../../src/core/job/job.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { Store } from "../../src/ports/store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const definition = defineJob({ type: "test.job" });
const opened: Store[] = [];
const pools: pg.Pool[] = [];
let database: TestPostgres;
let admin: pg.Pool;
let schemas = 0;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  admin = new pg.Pool({ connectionString: database.url, max: 2 });
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  for (const pool of pools.splice(0)) await pool.end();
});

afterAll(async () => {
  await admin.end();
  await database[Symbol.asyncDispose]();
});

interface Watched {
  readonly store: Store;
  /** Where each claim began: its ranges of ranks. */
  readonly starts: string[];
  /** The store behind it: `realSystem`, with time added by the test. */
  later(delay: number): void;
}

/** A store that listens, and whose claims are watched. */
async function watched(schema: string): Promise<Watched> {
  const starts: string[] = [];
  let added = 0;
  const pool = new pg.Pool({ connectionString: database.url, max: 8 });
  pools.push(pool);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (config: { name?: string; values?: unknown[] }) => unknown;
    Object.assign(client, {
      query: (config: { name?: string; values?: unknown[] }) => {
        if (config.name === "claim") starts.push(config.values?.[4] as string);
        return query(config);
      },
    });
  });
  const system = {
    after: realSystem.after.bind(realSystem),
    monotonic: () => realSystem.monotonic() + added,
  };
  const store = await openPostgresStore({ connection: pool as never, schema, system });
  opened.push(store);
  await store.listen(() => {});
  const later = (delay: number) => {
    added += delay;
  };
  return { store, starts, later };
}

function freshSchema(): string {
  schemas += 1;
  return `floors_${schemas}`;
}

function jobAt(dueAt: number, priority = 0) {
  const template = prepareJob(definition, { priority }, { now: dueAt, nextId, hash: (text) => text });
  return stamp(template, "null", nextId);
}

const request = { queue: "default", limit: 10, now, lease: 10_000, salt: 1, worker: "worker-1", from: 0 };

async function claim({ store }: Watched, limit = 10): Promise<JobRow[]> {
  return store.jobs.claim({ ...request, limit });
}

async function release({ store }: Watched, row: JobRow): Promise<void> {
  const { rank, attempt, returns, expiredClaims, waitAt, totalAt, heartbeat } = row;
  const image = {
    ...({ state: "available", wake: "decide", wakeAt: null, rank, attempt, returns, expiredClaims } as const),
    ...{ waitAt, totalAt, heartbeat, startedAt: null, softAt: null, hardAt: null, stallAt: null },
    ...{ finishedAt: null, pruneAt: null, deadLetter: false },
  };
  const [outcome] = await store.commit([{ job: { id: row.id, fence: row.fence, image } }], { now });
  expect(outcome).toEqual({ ok: true });
}

const floorOf = (time: number) => `{0,${rankOf(0, time)}}`;

describe("claims beside entries that no vacuum removes", () => {
  it("begin where the available jobs begin, and at once find a job that another process gives back", async () => {
    const schema = freshSchema();
    const [one, two] = [await watched(schema), await watched(schema)];
    await one.store.jobs.enqueue([jobAt(now), jobAt(now + 10), jobAt(now + 20)], { now });
    const [first, , third] = await claim(one);
    expect(third?.rank).toBe(rankOf(0, now + 20));
    expect(await claim(one)).toEqual([]);
    expect(one.starts).toEqual(["{0}", floorOf(now + 20)]);
    await release(two, first as JobRow);
    await expect.poll(() => claim(one)).toMatchObject([{ id: first?.id }]);
    expect(one.starts.at(-1)).toBe(floorOf(now));
  });

  it("find jobs of a better priority, jobs with an older rank, and promoted ones", async () => {
    const schema = freshSchema();
    const one = await watched(schema);
    await one.store.jobs.enqueue([jobAt(now + 1_000)], { now });
    expect(await claim(one)).toHaveLength(1);
    const [better, older] = [jobAt(now + 2_000, 5), jobAt(now)];
    await one.store.jobs.enqueue([older, better], { now });
    expect((await claim(one)).map(({ id }) => id)).toEqual([better.id, older.id]);
    const delayed = prepareJob(
      definition,
      { delay: "500ms" },
      { now: now - 500, nextId, hash: (text) => text },
    );
    const job = stamp(delayed, "null", nextId);
    await one.store.jobs.enqueue([job], { now: now - 500 });
    await one.store.jobs.sweep({ now: now + 2_000, limit: 10, holdUntil: now + 3_000 });
    expect(await claim(one)).toMatchObject([{ id: job.id }]);
  });

  it("find a job in a while that became available without a hint", async () => {
    const schema = freshSchema();
    const one = await watched(schema);
    await one.store.jobs.enqueue([jobAt(now), jobAt(now + 10)], { now });
    const [first] = await claim(one);
    await admin.query(`update ${schema}.jobs set state = 1 where id = $1`, [first?.id]);
    expect(await claim(one)).toEqual([]);
    // A busy queue: claims themselves ask for the look.
    one.later(31_000);
    await expect.poll(() => claim(one)).toMatchObject([{ id: first?.id }]);
    await admin.query(`update ${schema}.jobs set state = 1 where id = $1`, [first?.id]);
    expect(await claim(one)).toEqual([]);
    // A queue at rest: the lookout looks.
    one.later(31_000);
    const looked = await one.store.look({ queues: ["default"], destinations: [], records: [] });
    expect(looked.ready).toEqual(["default"]);
    expect(await claim(one)).toMatchObject([{ id: first?.id }]);
  });

  it("look at everything while the connection that listens is gone", async () => {
    const schema = freshSchema();
    const one = await watched(schema);
    await one.store.jobs.enqueue([jobAt(now), jobAt(now + 10)], { now });
    const [first] = await claim(one);
    await admin.query(`update ${schema}.jobs set state = 1 where id = $1`, [first?.id]);
    expect(await claim(one)).toEqual([]);
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()",
    );
    await expect.poll(() => claim(one)).toMatchObject([{ id: first?.id }]);
  });

  it("sweep what a transaction commits long after it was due", async () => {
    const schema = freshSchema();
    const one = await watched(schema);
    const sweep = (at: number) => one.store.jobs.sweep({ now: at, limit: 10, holdUntil: at + 1_000 });
    expect((await sweep(now)).ready.size).toBe(0);
    const delayed = prepareJob(
      definition,
      { delay: "500ms" },
      { now: now - 100_000, nextId, hash: (text) => text },
    );
    await one.store.jobs.enqueue([stamp(delayed, "null", nextId)], { now: now - 100_000 });
    one.later(31_000);
    expect((await sweep(now + 1_000)).ready).toEqual(new Map([["default", 1]]));
  });
});
