import pg from "pg";
import { expect, inject, it } from "vitest";
import { defineJob, openEngine, silentLogger } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";

it("a strict limit on PostgreSQL admits its jobs in order, though another transaction looks at the first one", async () => {
  await using database = await createDatabase(inject("postgresUrl"));
  await using engine = await openEngine({ store: database.url, logger: silentLogger });
  const job = defineJob({ type: "strict.job", limit: { key: "lane", concurrency: 1, strict: true } });
  const [first, second, third] = await engine.enqueueMany(job, [null, null, null]);
  const state = async (handle = first) => (await handle?.load())?.state;
  expect([await state(first), await state(second), await state(third)]).toEqual([
    "available",
    "pending",
    "pending",
  ]);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("begin");
  await client.query("select 1 from curfew.jobs where id = $1 for update", [second?.id]);
  let isDone = false;
  const cancelled = first?.cancel().finally(() => {
    isDone = true;
  });
  const isWaiting = async () => {
    const waiting =
      "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    return isDone || (await client.query(waiting)).rows.length > 0;
  };
  await expect.poll(isWaiting).toBe(true);
  await client.query("commit");
  await client.end();
  await cancelled;
  expect([await state(second), await state(third)]).toEqual(["available", "pending"]);
});
