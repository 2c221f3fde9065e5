import pg from "pg";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { createDatabase, type TestPostgres } from "../postgres.ts";

let database: TestPostgres;
let client: pg.Client;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});

afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

it("runs a real PostgreSQL", async () => {
  const { rows } = await client.query<{ version: string }>("select version()");
  expect(rows[0]?.version).toMatch(/^PostgreSQL 1[5-9]/);
});

it.each(["fsync", "full_page_writes", "synchronous_commit"])(
  "keeps %s on, as in production",
  async (name) => {
    const { rows } = await client.query<{ value: string }>("select current_setting($1) as value", [name]);
    expect(rows[0]?.value).toBe("on");
  },
);

it("gives each caller an empty database of its own", async () => {
  const { rows } = await client.query(
    "select 1 from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')",
  );
  expect(rows).toEqual([]);
});
