import { describe, expect, inject, it } from "vitest";
import { createDatabase } from "../postgres.ts";
import { startRedis } from "../redis.ts";
import { fillBullmq, fillGraphile, fillPgBoss } from "./engines.ts";
import { killRun } from "./kill-run.ts";
import { createSqlite, openStore } from "./support.ts";

/** Ten batches of PostgreSQL, five pages of Redis. `npm run test:import` moves 100,000. */
const JOBS = { postgres: 5_000, redis: 500 };
const GOOD = { lost: 0, doubled: 0, left: 0 };
const redis = await startRedis();

describe("an import that is killed in the middle and repeated", () => {
  it("loses and doubles nothing from pg-boss within one database", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await (await openStore(database.url)).close();
    await using engine = await fillPgBoss(database.url, JOBS.postgres);
    const run = await killRun(engine, database.url, JOBS.postgres, [0.1]);
    expect(run).toMatchObject({ ...GOOD, isAtomic: true, known: 0 });
    expect(run.killedAt[0]).toBeGreaterThan(0);
  });

  it("loses and doubles nothing from graphile-worker into a SQLite file", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await using sqlite = await createSqlite();
    await using engine = await fillGraphile(database.url, JOBS.postgres);
    const run = await killRun(engine, sqlite.address, JOBS.postgres, [0.1]);
    expect(run).toMatchObject({ ...GOOD, isAtomic: false });
    expect(run.killedAt[0]).toBeGreaterThan(0);
  });

  it.skipIf(redis === null)("loses and doubles nothing from BullMQ", async () => {
    await using server = redis;
    await using sqlite = await createSqlite();
    await using engine = await fillBullmq(server?.url ?? "", JOBS.redis);
    const run = await killRun(engine, sqlite.address, JOBS.redis, [0.1]);
    expect(run).toMatchObject({ ...GOOD, isAtomic: false });
    expect(run.killedAt[0]).toBeGreaterThan(0);
  });
});
