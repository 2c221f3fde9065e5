import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import type { JobRow } from "../../src/core/job/job.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { JobWrite } from "../../src/ports/store.ts";
import { formOf } from "../../src/stores/postgres/job-write-statements.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const definition = defineJob({ type: "test.job" });

let database: TestPostgres;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

/** How a claimed job ends. `nth` is in everything that may vary between jobs. */
function finish(row: JobRow, nth: number, varies: boolean): JobWrite {
  const mine = varies ? nth : 0;
  return {
    id: row.id,
    fence: row.fence,
    image: {
      ...({ state: varies && nth % 2 ? "discarded" : "completed", wake: "decide", wakeAt: null } as const),
      ...{ rank: row.rank + mine, attempt: 1 + mine, returns: mine, expiredClaims: mine },
      ...{ waitAt: null, totalAt: now + mine, startedAt: now + mine, softAt: mine === 0 ? null : now },
      ...{ hardAt: null, stallAt: null, heartbeat: 1_000 + mine, finishedAt: now + mine },
      ...{ pruneAt: now + 1_000 + mine, deadLetter: varies && nth % 2 === 1 },
    },
    documents: {
      result: varies ? `{"n":${nth}}` : '"same"',
      ...(varies && nth % 2 && { progress: '{"percent":5}' }),
    },
  };
}

/** A job that ends like all others of its worker, `later` than the first one, and on another rank. */
function finishLater(row: JobRow, later: number, rank: number): JobWrite {
  const { image, ...write } = finish(row, 0, false);
  if (!image) return write;
  const at = now + later;
  const attempt = { startedAt: at, softAt: at + 5, hardAt: at + 7, finishedAt: at + 1, pruneAt: at + 9 };
  return { ...write, image: { ...image, ...attempt, rank: row.rank + rank, totalAt: now + rank } };
}

async function finishAll(
  finishOne: (row: JobRow, nth: number) => JobWrite,
  connection: unknown = database.url,
) {
  const store = await openPostgresStore({
    connection: connection as string,
    schema: `forms_${nextId().slice(-12)}`,
    system: realSystem,
  });
  onTestFinished(() => store.close());
  const template = prepareJob(definition, undefined, { now, nextId, hash: (text) => text });
  await store.jobs.enqueue(
    Array.from({ length: 6 }, () => stamp(template, "null", nextId)),
    { now },
  );
  const request = { queue: "default", limit: 10, now, lease: 10_000, salt: 1, worker: "w", from: 0 };
  const rows = await store.jobs.claim(request);
  expect(rows).toHaveLength(6);
  const writes = rows.map((row, nth) => finishOne(row, nth));
  const outcomes = await store.commit(
    writes.map((job) => ({ job })),
    { now },
  );
  expect(outcomes).toEqual(writes.map(() => ({ ok: true })));
  const loaded = await store.jobs.load(rows.map(({ id }) => id));
  expect(loaded).toEqual(
    rows.map((row, nth) => {
      const { image, documents } = writes[nth] as JobWrite;
      return { ...row, ...image, ...documents, rev: row.rev + 1 };
    }),
  );
}

const alike = (row: JobRow, nth: number) => finish(row, nth, false);
const unlike = (row: JobRow, nth: number) => finish(row, nth, true);

/** A pool that notes the names of the statements that end jobs. */
function watchedPool() {
  const pool = new pg.Pool({ connectionString: database.url, max: 32 });
  const names = new Set<string>();
  const connect = async () => {
    const client = await pool.connect();
    const query = client.query.bind(client) as (config: { name?: string }) => Promise<unknown>;
    client.query = ((config: { name?: string }) => {
      if (config.name?.startsWith("finish")) names.add(config.name);
      return query(config);
    }) as typeof client.query;
    return client;
  };
  return { pool, names, connection: { options: pool.options, connect } };
}

describe("a set of writes to jobs", () => {
  it("writes what its jobs agree on, and what they differ in", async () => {
    await finishAll(alike);
    await finishAll(unlike);
  });

  it("writes instants that are equally far apart in all of its jobs, and those that are not", async () => {
    await finishAll((row, nth) => finishLater(row, nth, 0));
    await finishAll((row, nth) => {
      const { image, ...write } = finishLater(row, nth, 0);
      return { ...write, ...(image && { image: { ...image, hardAt: now + 7 * nth } }) };
    });
  });

  it("is the same statement whichever instants and ranks the jobs of a worker share", async () => {
    const { pool, names, connection } = watchedPool();
    onTestFinished(() => pool.end());
    await finishAll((row) => finishLater(row, 0, 0), connection);
    await finishAll((row, nth) => finishLater(row, nth, 0), connection);
    await finishAll((row, nth) => finishLater(row, 0, nth), connection);
    await finishAll((row, nth) => finishLater(row, nth, nth), connection);
    expect(names.size).toBe(1);
  });

  it("does so too after more forms were used than the server should keep", async () => {
    const used = Array.from({ length: 40 }, (_, nth) => formOf(nth << 3));
    expect(used.at(-1)).not.toBe(39 << 3);
    await finishAll(alike);
    await finishAll(unlike);
    await finishAll((row, nth) => finishLater(row, nth, nth));
  });
});
