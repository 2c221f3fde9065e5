import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { rankOf } from "../../src/core/job/job.ts";
import type { Store } from "../../src/ports/store.ts";
import { Peers } from "../../src/stores/postgres/connection.ts";
import { createConnections } from "../../src/stores/postgres/connections.ts";
import { OwnPool } from "../../src/stores/postgres/dial.ts";
import { migrate as migratePostgres } from "../../src/stores/postgres/migrate.ts";
import { MIGRATIONS as POSTGRES } from "../../src/stores/postgres/migrations.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { bindSchema } from "../../src/stores/postgres/session.ts";
import { checksumOf, type Migration } from "../../src/stores/sql/migrator.ts";
import { Connection } from "../../src/stores/sqlite/connection.ts";
import { defaultBinding } from "../../src/stores/sqlite/find-binding.ts";
import { migrate as migrateSqlite } from "../../src/stores/sqlite/migrate.ts";
import { MIGRATIONS as SQLITE } from "../../src/stores/sqlite/migrations.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { productionSystem as system } from "../support/system.ts";

const NOW = 1_800_000_000_000;
const READY = "01890000-0000-7000-8000-000000000001";
const LATER = "01890000-0000-7000-8000-000000000002";
const ENDED = "01890000-0000-7000-8000-000000000003";
const BARRIER = "01890000-0000-7000-8000-000000000004";

/** What a database of the first version held, as that version wrote it. `t` names a table there. */
function data(t: (name: string) => string): string {
  const live = "id, queue, type, priority, created_at, payload, options, state, wake, wake_at, rank";
  const done = `${live}, fence, rev, needs, attempt, returns, strikes, finished_at, prune_at, dead_letter, result`;
  const rank = rankOf(0, NOW);
  return `
    insert into ${t("jobs")} (${live}, unique_key)
      values ('${READY}', 'default', 'old', 0, ${NOW}, '{"n":1}', '{"meta":{"z":1,"a":2}}', 1, 0, null, ${rank}, 'key');
    insert into ${t("jobs")} (${live})
      values ('${LATER}', 'default', 'old', 5, ${NOW}, '{"n":2}', '{"rung":{"timeouts":{"attempt":5000}}}', 3, 1, ${NOW + 60_000}, ${rankOf(5, NOW + 60_000)});
    insert into ${t("jobs")} (${live}, workflow)
      values ('${BARRIER}', 'curfew.workflows', 'old', 0, ${NOW}, 'null', '{"step":{"wakes":[],"turn":{"role":"turnstile"}}}', 0, 0, null, ${rank}, 'w');
    insert into ${t("done")} (${done})
      values ('${ENDED}', 'default', 'old', 0, ${NOW}, '{"n":3}', null, 5, 0, null, ${rank}, 2097153, 3, 0, 1, 0, 0,
              ${NOW + 5}, ${NOW + 86_400_000}, 0, '[3]');
    insert into ${t("records")} (kind, key, version, wake_at, body) values ('kit', 'a', 7, null, '{"kept":true}');
    insert into ${t("records")} (kind, key, version, wake_at, body) values ('unique', 'key', 1, null, '{"keepers":[]}');
    insert into ${t("events")} (at, body) values (${NOW}, '"old event"');`;
}

/** Everything that was there is there, and works as if it had been written today. */
async function checkOldData(store: Store): Promise<void> {
  const [ready, later, ended, barrier] = await store.jobs.load([READY, LATER, ENDED, BARRIER]);
  expect(barrier?.options).toEqual({ step: { wakes: [], waitsFor: { role: "barrier" } } });
  expect((await store.records.load([["unique", "key"]]))[0]?.body).toEqual({ holders: [] });
  expect(ready).toMatchObject({ state: "available", payload: '{"n":1}', options: { meta: { z: 1, a: 2 } } });
  expect(later).toMatchObject({ state: "scheduled", priority: 5, wakeAt: NOW + 60_000 });
  expect(later?.options).toEqual({ settings: { timeouts: { attempt: 5_000 } } });
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
    const connection = new Connection({ path, binding: await defaultBinding() }, system);
    connection.configure();
    await migrateSqlite(connection, system, SQLITE.slice(0, 1));
    connection.execute(data((name) => `curfew_${name}`));
    await migrateSqlite(connection, system, SQLITE.slice(0, version));
    await connection.close();
    const store = await openSqliteStore({ path, system });
    await checkOldData(store);
    await store.close();
    const file = new DatabaseSync(path);
    const rows = file.prepare("select version from curfew_migrations order by 1").all();
    expect(rows.map(({ version }) => version)).toEqual(versionsOf(SQLITE));
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
    const [pool, peers] = [await OwnPool.load(database.url), new Peers()];
    const lanes = createConnections({ pool, bind: bindSchema(schema), system, peers });
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
  it("have the checksums of their release", () => {
    expect(SQLITE.map(checksumOf)).toMatchInlineSnapshot(`
      [
        "c40144c584cc9a4381c249ed9335aa308ed74a4f40d2db3d8d91cc6ab331873e",
        "9b37616b6a0a2d5ea4af52539d759843b78943280ea96a11dd279f6563c35d05",
        "5798313dc964a1ad3c5918bb752d6b570cb6a3b8ea2cad565340f398797c048c",
        "e154fda02eea905d3f04ae5b4f3988e1026f562c1457e7c828d351f1b5d131f6",
        "988f09769be084ba66bd4b783aa246c8273f9ada1f8e4591c198687d2ed305a3",
        "7206c37c94bcdb39530e06c38d5505da82ea8905d869341e3fdd599aa12c9717",
        "9cec70b278b5e110fa8d4516e246b5bce255096a144c3d3e37b80c42e78d8180",
        "4ab5f92c48af1bcb730cdb5d4cbdf0c841fdad885bc6b17bb46f56d634b8a2b6",
        "7b106e2b40a0bdda31fcbfe734e3428f7fd378b4460e7ec174eeb42b71389c26",
        "c247cba61a1b1b9af2b0f7a4ecfde253c8dce730b79046c1cb2267ce2872eed8",
      ]
    `);
    expect(POSTGRES.map(checksumOf)).toMatchInlineSnapshot(`
      [
        "5cc2ba582e97c76457fc99b7414fac308bce75b734b77dc723f57a6757ab8170",
        "d130919b949ff4806125996a4b03d88b295e3e1ec5b739fc12f0f184d9be5152",
        "31ec5976bb0e8717e6c2914144a51795e54bad7e95c9baa9d844d14c6858854a",
        "e13d7c23f7eaa574f56c662fcc87c95cf8d6f30336fb602c4a7659b1e00fe5e4",
        "d4e554381f5f334a5bf86f6127daa73cea8bcfa358349abdf7bea8c7ef529bc6",
        "994a2ab8451767d0640936d8bc63718f1e12c85a96b8b361f4bcb7c331b27fb3",
        "a905866e6420b85366c82a169cc7331e7b10aca537d349380947e680215eebd9",
        "692891d6867444b50246a71f0a85f4cf07d4ef5cfd5e9bda31966ad4b7a5e17b",
        "544d5d7c1215e8007742ab95e31154d9d263e0574159c26fd05984251b9f6b03",
        "acca37ed9940a87914f56f1b473cd364ffc18523e98cc0384881938e17bf150d",
        "a832e288536bd2b920c233cba8a25db6918c1ee4ffe9653e5b88f4a90fe5b24f",
      ]
    `);
  });
});
