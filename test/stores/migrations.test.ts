import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { rankOf } from "../../src/core/job/job.ts";
import type { Store } from "../../src/ports/store.ts";
import { bindSchema, poolOf } from "../../src/stores/postgres/connection.ts";
import { createConnections } from "../../src/stores/postgres/connections.ts";
import { migrate as migratePostgres } from "../../src/stores/postgres/migrate.ts";
import { MIGRATIONS as POSTGRES } from "../../src/stores/postgres/migrations.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { checksumOf, type Migration } from "../../src/stores/sql/migrator.ts";
import { Connection } from "../../src/stores/sqlite/connection.ts";
import { migrate as migrateSqlite } from "../../src/stores/sqlite/migrate.ts";
import { MIGRATIONS as SQLITE } from "../../src/stores/sqlite/migrations.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { productionSystem as system } from "../support/system.ts";

const NOW = 1_800_000_000_000;
const READY = "01890000-0000-7000-8000-000000000001";
const LATER = "01890000-0000-7000-8000-000000000002";
const ENDED = "01890000-0000-7000-8000-000000000003";

/** What a database of the first version held, as that version wrote it. `t` names a table there. */
function data(t: (name: string) => string): string {
  const live = "id, queue, type, priority, created_at, payload, options, state, wake, wake_at, rank";
  const done = `${live}, fence, rev, needs, attempt, returns, expired_claims, finished_at, prune_at, dead_letter, result`;
  const rank = rankOf(0, NOW);
  return `
    insert into ${t("jobs")} (${live}, unique_key)
      values ('${READY}', 'default', 'old', 0, ${NOW}, '{"n":1}', '{"meta":{"z":1,"a":2}}', 1, 0, null, ${rank}, 'key');
    insert into ${t("jobs")} (${live})
      values ('${LATER}', 'default', 'old', 5, ${NOW}, '{"n":2}', null, 3, 1, ${NOW + 60_000}, ${rankOf(5, NOW + 60_000)});
    insert into ${t("done")} (${done})
      values ('${ENDED}', 'default', 'old', 0, ${NOW}, '{"n":3}', null, 5, 0, null, ${rank}, 2097153, 3, 0, 1, 0, 0,
              ${NOW + 5}, ${NOW + 86_400_000}, 0, '[3]');
    insert into ${t("records")} (kind, key, version, wake_at, body) values ('kit', 'a', 7, null, '{"kept":true}');
    insert into ${t("events")} (at, body) values (${NOW}, '"old event"');`;
}

/** Everything that was there is there, and works as if it had been written today. */
async function checkOldData(store: Store): Promise<void> {
  const [ready, later, ended] = await store.jobs.load([READY, LATER, ENDED]);
  expect(ready).toMatchObject({ state: "available", payload: '{"n":1}', options: { meta: { z: 1, a: 2 } } });
  expect(later).toMatchObject({ state: "scheduled", priority: 5, wakeAt: NOW + 60_000 });
  expect(ended).toMatchObject({ state: "completed", result: "[3]", attempt: 1, fence: 2_097_153 });
  // Transactions of other tests on the same server hold the reading of events back for as long as they run.
  await expect.poll(async () => (await store.inspect.events(null, 10)).events).toEqual(["old event"]);
  const sweep = { now: NOW + 60_000, limit: 10, holdUntil: NOW + 70_000 };
  expect([...(await store.jobs.sweep(sweep)).ready]).toEqual([["default", 1]]);
  const claim = { queue: "default", limit: 10, lease: 10_000, salt: 1, worker: "worker", from: 0 };
  const rows = await store.jobs.claim({ ...claim, now: NOW + 60_000 });
  expect(rows.map(({ id }) => id)).toEqual([LATER, READY]);
  await checkOldRecord(store);
}

async function checkOldRecord(store: Store): Promise<void> {
  const key = ["kit", "a"] as const;
  const read = async () => (await store.records.load([key]))[0];
  const put = { put: key, body: 1, wakeAt: null };
  expect(await read()).toEqual({ key, version: 7, wakeAt: null, body: { kept: true } });
  const guarded = { when: [{ record: key, version: 7 }], effects: [put] };
  expect(await store.commit([guarded, { effects: [{ delete: key }] }], { now: NOW })).toEqual([
    { ok: true },
    { ok: true },
  ]);
  await store.commit([{ effects: [put] }], { now: NOW });
  expect((await read())?.version).toBeGreaterThan(8);
}

const versionsOf = (migrations: readonly Migration[]) => migrations.map(({ version }) => version);

describe("a SQLite file", () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "curfew-migrations-"));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(versionsOf(SQLITE))("version %i is migrated with all that is in it", async (version) => {
    const path = join(folder, `${version}.db`);
    const connection = new Connection(path, system);
    connection.configure();
    await migrateSqlite(connection, system, SQLITE.slice(0, version));
    connection.execute(data((name) => `curfew_${name}`));
    await connection.close();
    const store = await openSqliteStore({ path, system });
    await checkOldData(store);
    await store.close();
    const file = new Database(path);
    expect(file.prepare("select version from curfew_migrations order by 1").pluck().all()).toEqual(
      versionsOf(SQLITE),
    );
    file.close();
  });
});

describe("a PostgreSQL schema", () => {
  let database: TestPostgres;

  beforeAll(async () => {
    database = await createDatabase(inject("postgresUrl"));
  });

  afterAll(async () => {
    await database[Symbol.asyncDispose]();
  });

  it.each(versionsOf(POSTGRES))("version %i is migrated with all that is in it", async (version) => {
    const schema = `from_${version}`;
    const lanes = createConnections({ pool: poolOf(database.url), bind: bindSchema(schema) });
    await migratePostgres(lanes.inspect, schema, POSTGRES.slice(0, 1));
    await lanes.inspect.run({ text: `do $$ begin ${data((name) => `curfew.${name}`)} end $$` });
    await migratePostgres(lanes.inspect, schema, POSTGRES.slice(0, version));
    await lanes.close();
    const store = await openPostgresStore({ connection: database.url, schema, system });
    await checkOldData(store);
    await store.close();
  });
});

/** A released step must never change: this list only ever grows. */
describe("the texts of released steps", () => {
  it("are what they were", () => {
    expect(SQLITE.map(checksumOf)).toMatchInlineSnapshot(`
      [
        "020594a9be3316f797b090f0da6ea127d2726ac170f37c552a5b1f8b8980300e",
        "9d1070c8e0ffc0188e70b276dfea3e3fbefce37efa7f0274f391e2cc6b8ae9ee",
        "e358bf5da317a2ecaf1869af99b2e6a7273fdd27a0e7a5eb9e1e7ce614b56554",
        "da0516f418b7b132d253fd1a7c0353378ffd3dc84827c35d4c4619588283f81f",
        "8ca755a91a53d376eb4d84efc35261f919cf521ab8c1133ecb474cf365be7df9",
        "334ea3862392fb33abe23d8e7769268e0968e97728f8b8172d33142699f8e0f8",
      ]
    `);
    expect(POSTGRES.map(checksumOf)).toMatchInlineSnapshot(`
      [
        "5bd2d6c27a75c7574d874ad63f55ff51053d86ac255c30a53bbb08ade323940e",
        "7345c32470f28edf520a08ce34370212e559a3b1d21eceec6d97d031f58d1fcf",
        "f26ff0f4489e4183253eaf8f9ffbfeb909187f1139682d2372d804fab7f713a2",
        "57322e73f4015e450303fad4a91499cffe1dff75a6385a644a7834eb90eacb76",
        "593ca4df94365c415848ffe91f5a4095ba6766c995e1522d10b48ed272d4c88f",
        "ceb58080634d22486af15ac2a5e020d67f5afeeacd6ee1bbaf325cd106fd0352",
      ]
    `);
  });
});
