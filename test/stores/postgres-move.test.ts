import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/enqueue/envelope.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openPostgresStore } from "../../src/open.ts";
import type { Store } from "../../src/ports/store.ts";
import { type Cluster, startCluster } from "../failover/cluster.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const nextId = createIdSource(() => now, realSystem.fill);
const definition = defineJob({ type: "moved.job" });
const RECORD = ["kit", "moved"] as const;

function newJob(event: string) {
  const job = stamp(prepareJob(definition, undefined, { now, nextId, hash: (text) => text }), "{}", nextId);
  return { ...job, records: { event } };
}

async function putRecord(store: Store): Promise<number> {
  await store.commit([{ effects: [{ put: RECORD, body: 1, wakeAt: null }] }], { now });
  return (await store.records.load([RECORD]))[0]?.version as number;
}

/** Transactions of other tests hold the reading of events back for as long as they run. */
async function eventsAfter(store: Store, cursor: string | null, count: number) {
  await expect
    .poll(async () => (await store.inspect.events(cursor, 100)).events.length)
    .toBeGreaterThanOrEqual(count);
  return store.inspect.events(cursor, 100);
}

const TABLES = ["jobs", "done", "records", "events", "logs", "timeouts", "cluster"];

/** Copies all rows, as a dump and logical replication do. Only a dump brings the positions of sequences along. */
async function move(from: string, to: string, withSequences: boolean): Promise<void> {
  const [source, target] = [
    new pg.Client({ connectionString: from }),
    new pg.Client({ connectionString: to }),
  ];
  await Promise.all([source.connect(), target.connect()]);
  try {
    await (await openPostgresStore({ connection: to })).close();
    for (const table of TABLES) {
      const { rows } = await source.query(
        `select coalesce(json_agg(t), '[]')::text as rows from curfew.${table} t`,
      );
      await target.query(`truncate curfew.${table}`);
      await target.query(
        `insert into curfew.${table} overriding system value
         select * from json_populate_recordset(null::curfew.${table}, $1)`,
        [rows[0].rows],
      );
    }
    if (!withSequences) return;
    for (const [table, column] of [
      ["records", "version"],
      ["events", "seq"],
      ["logs", "seq"],
    ]) {
      const sequence = `curfew.${table}_${column}_seq`;
      const { rows } = await source.query(`select last_value from ${sequence}`);
      await target.query(`select setval('${sequence}', $1)`, [rows[0].last_value]);
    }
  } finally {
    await Promise.all([source.end(), target.end()]);
  }
}

describe("tables that are moved to another cluster", () => {
  let cluster: Cluster;
  let old: TestPostgres;

  beforeAll(async () => {
    cluster = await startCluster();
    old = await createDatabase(inject("postgresUrl"));
    // Transactions of the old cluster have higher numbers than those of the new one.
    const client = new pg.Client({ connectionString: old.url });
    await client.connect();
    await client.query(`create temporary table burnt (n int);
      do $$ begin for n in 1..20000 loop
        begin insert into burnt values (n); exception when others then null; end;
      end loop; end $$`);
    await client.end();
  });

  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await old[Symbol.asyncDispose]();
  });

  it.each([
    ["a dump", true],
    ["logical replication", false],
  ] as const)("by %s keep their events, cursors and numbers", async (_, withSequences) => {
    await using target = await createDatabase(cluster.primary.url);
    const before = await openPostgresStore({ connection: old.url });
    const names = Array.from({ length: 13 }, (_, index) => `event ${index}`);
    const start = (await before.inspect.latestEvents(1)).cursor;
    const jobs = names.map(newJob);
    for (const job of jobs) await before.jobs.enqueue([job], { now });
    const line = { log: { message: "before" }, job: jobs[0]?.id ?? "" };
    await before.commit([{ effects: [line] }], { now });
    const version = await putRecord(before);
    const read = await eventsAfter(before, start, 13);
    expect(read.events).toEqual(names);
    await before.close();
    await move(old.url, target.url, withSequences);

    const after = await openPostgresStore({ connection: target.url });
    try {
      await after.jobs.enqueue([newJob("later")], { now });
      expect((await eventsAfter(after, start, 14)).events).toEqual([...names, "later"]);
      // A follower that had read six of them, and one that had read all.
      const sixth = read.cursors[5] as string;
      expect((await eventsAfter(after, sixth, 8)).events).toEqual([...names.slice(6), "later"]);
      const last = await eventsAfter(after, read.cursor, 1);
      expect(last.events).toEqual(["later"]);
      await after.jobs.enqueue([newJob("latest")], { now });
      expect((await eventsAfter(after, last.cursor, 1)).events).toEqual(["latest"]);
      await expect
        .poll(async () => (await after.inspect.latestEvents(2)).events)
        .toEqual(["later", "latest"]);
      expect(await putRecord(after)).toBeGreaterThan(version);
      await after.commit([{ effects: [{ ...line, log: { message: "after" } }] }], { now });
      expect(await after.inspect.logLines(line.job, 0, 10)).toMatchObject([
        { line: { message: "before" } },
        { line: { message: "after" } },
      ]);
    } finally {
      await after.close();
    }
  });
});

describe("a promotion of a standby that lags behind", () => {
  it("repeats no version and no cursor of what was lost", async () => {
    await using cluster = await startCluster();
    const before = await openPostgresStore({ connection: cluster.primary.url });
    const kept = await putRecord(before);
    await before.jobs.enqueue([newJob("kept")], { now });
    const reached = "select 1 from curfew.jobs";
    await expect.poll(async () => (await cluster.standby.query(reached)).length).toBe(1);
    await cluster.standby.query("alter system set primary_conninfo = ''");
    await cluster.standby.query("select pg_reload_conf()");
    await expect
      .poll(async () => (await cluster.primary.query("select 1 from pg_stat_replication")).length)
      .toBe(0);
    // More than the 32 values that the log of a sequence runs ahead.
    const lost: number[] = [];
    for (let writes = 0; writes < 50; writes++) lost.push(await putRecord(before));
    for (let writes = 0; writes < 5; writes++) await before.jobs.enqueue([newJob("lost")], { now });
    const { cursor } = await eventsAfter(before, null, 6);
    await cluster.primary.kill();
    await cluster.promote();
    await before.close();

    const after = await openPostgresStore({ connection: cluster.primary.url });
    try {
      expect((await after.records.load([RECORD]))[0]?.version).toBe(kept);
      const versions: number[] = [];
      for (let writes = 0; writes < 50; writes++) versions.push(await putRecord(after));
      expect(versions.filter((version) => lost.includes(version))).toEqual([]);
      expect(Math.min(...versions)).toBeGreaterThan(Math.max(...lost));
      await after.jobs.enqueue([newJob("new")], { now });
      expect((await eventsAfter(after, cursor, 1)).events).toEqual(["new"]);
    } finally {
      await after.close();
    }
  });
});
