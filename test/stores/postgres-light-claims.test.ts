import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { prepareJob, stamp } from "../../src/core/job/envelope.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { claimedRow } from "../../src/core/job/store-formulas.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { JobStore, Store } from "../../src/ports/store.ts";
import { CLAIM } from "../../src/stores/postgres/claim-statements.ts";
import { MIGRATIONS } from "../../src/stores/postgres/migrations.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const now = 1_800_000_000_000;
const LEASE = 10_000;
const nextId = createIdSource(() => now, realSystem.fill);
const plain = defineJob({ type: "test.plain", timeouts: { wait: "1h", total: "2h" } });
const limited = defineJob({ type: "test.limited", limit: { key: "few", concurrency: 9 } });
const claim = { queue: "default", limit: 200, now, lease: LEASE, salt: 7, worker: "worker-1", from: 0 };
/** The last version before light claims. */
const BEFORE = 11;

function newJobs(count: number, definition = plain) {
  return Array.from({ length: count }, () =>
    stamp(prepareJob(definition, undefined, { now, nextId, hash: (text) => text }), "{}", nextId),
  );
}

let database: TestPostgres;
let admin: pg.Pool;
let schemas = 0;
let schema = "";
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

async function open(): Promise<Store> {
  const store = await openPostgresStore({ connection: database.url, schema, system: realSystem });
  opened.push(store);
  return store;
}

function fresh(): Promise<Store> {
  schemas += 1;
  schema = `light_${schemas}`;
  return open();
}

async function one(text: string): Promise<Record<string, unknown>> {
  return (await admin.query(text.replaceAll("curfew.", `${schema}.`))).rows[0];
}

function sweepAt(store: Store, at: number): ReturnType<JobStore["sweep"]> {
  return store.jobs.sweep({ now: at, limit: 1_000, holdUntil: at + 5_000 });
}

const UNFILED = "select count(*)::int as n from curfew.jobs where state = 1 and claim_wake_at is not null";

describe("light claims", () => {
  it("write no index entry and stay on their page, and every read shows them as active", async () => {
    const store = await fresh();
    const jobs = newJobs(1_000);
    await store.jobs.enqueue(jobs, { now });
    const before = await one("select pg_relation_size('curfew.jobs_pkey') as size");
    const rows = (await Promise.all([1, 2, 3, 4, 5].map(() => store.jobs.claim(claim)))).flat();
    expect(new Set(rows.map(({ id }) => id)).size).toBe(1_000);
    expect(await one(UNFILED)).toEqual({ n: 1_000 });
    const size = await one("select pg_relation_size('curfew.jobs_pkey') as size");
    expect(size).toEqual(before);
    const [row] = rows;
    expect(await store.jobs.load([row?.id as string])).toEqual([row]);
    const [job] = jobs;
    const fresher = rows.find(({ id }) => id === job?.id);
    expect(fresher?.wakeAt).toBe(now + LEASE);
    expect(await store.jobs.claim(claim)).toEqual([]);
    expect(await store.inspect.readyQueues(null, 10)).toEqual([]);
    const scan = (state: "active" | "available") => ({ filter: { state }, after: null });
    expect((await store.inspect.page(scan("active"), 5)).jobs.map(({ state }) => state)).toEqual(
      Array(5).fill("active"),
    );
    expect((await store.inspect.page(scan("available"), 5)).jobs).toEqual([]);
    expect((await store.inspect.count(scan("active"))).count).toBe(1_000);
    expect((await store.inspect.count(scan("available"))).count).toBe(0);
    expect((await store.inspect.live()).map(({ state, count }) => [state, count])).toEqual([["active", 1_000]]);
    expect(await store.inspect.oldestReady(5)).toEqual([]);
    const depths = await store.inspect.depths("default");
    expect(depths.get("default")).toMatchObject({ available: 0, active: 1_000 });
  });

  it("a claim that is over is handed to exactly one sweep, with the row as it was claimed", async () => {
    const store = await fresh();
    const other = await open();
    await store.jobs.enqueue(newJobs(50), { now });
    const rows = await store.jobs.claim(claim);
    expect((await sweepAt(store, now)).nextWakeAt).toBe(now + LEASE);
    expect((await sweepAt(store, now + LEASE - 1)).jobs).toEqual([]);
    const swept = await Promise.all([store, other].map((each) => sweepAt(each, now + LEASE)));
    const found = swept.flatMap(({ jobs }) => jobs);
    const byId = new Map(rows.map((row) => [row.id, row]));
    expect(found).toHaveLength(50);
    for (const row of found) expect(row).toEqual({ ...byId.get(row.id), wakeAt: now + LEASE + 5_000 });
    expect(await one("select count(*)::int as n from curfew.claims")).toEqual({ n: 0 });
  });

  it("a job that settled, was released or began is no longer in the claim when it ends", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(3), { now });
    const [settled, released] = await store.jobs.claim({ ...claim, limit: 2 });
    if (!settled || !released) throw new Error("two jobs were there");
    const image = { ...released, state: "available", stallAt: null, wakeAt: released.waitAt } as const;
    const outcomes = await store.commit(
      [
        { job: { id: settled.id, fence: settled.fence, rev: settled.rev, drop: true } },
        { job: { id: released.id, fence: released.fence, rev: released.rev, image } },
      ],
      { now },
    );
    expect(outcomes).toEqual([{ ok: true }, { ok: true }]);
    // Nothing of the claim is left, so it does not wake the next sweep.
    expect((await sweepAt(store, now)).nextWakeAt).toBe(released.waitAt);
    expect(await one("select count(*)::int as n from curfew.claims")).toEqual({ n: 0 });
    const swept = await sweepAt(store, now + LEASE);
    expect(swept.jobs).toEqual([]);
    expect(await store.jobs.claim(claim)).toHaveLength(2);
  });

  it("a transaction that has locked a job does not stop the sweep, and the job is found when it rolls back", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(3), { now });
    const rows = await store.jobs.claim(claim);
    const caller = await admin.connect();
    try {
      await caller.query("begin");
      await caller.query(`delete from ${schema}.jobs where id = $1`, [rows[0]?.id]);
      const first = await sweepAt(store, now + LEASE);
      expect(first.jobs.map(({ id }) => id).sort()).toEqual([rows[1]?.id, rows[2]?.id].sort());
      expect(await one("select count(*)::int as n from curfew.claims")).toEqual({ n: 1 });
    } finally {
      await caller.query("rollback");
      caller.release();
    }
    expect((await sweepAt(store, now + LEASE)).jobs.map(({ id }) => id)).toEqual([rows[0]?.id]);
    expect(await one("select count(*)::int as n from curfew.claims")).toEqual({ n: 0 });
  });

  it("a claim that is rolled back leaves nothing", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(2), { now });
    const other = await admin.connect();
    try {
      await other.query("begin");
      const text = CLAIM.text.replaceAll("curfew.", `${schema}.`);
      const taken = await other.query(text, ["default", now, 1, 3, 0, "other", LEASE, 0]);
      expect(taken.rowCount).toBe(1);
      // Meanwhile a second claim gets the other job only.
      expect(await store.jobs.claim(claim)).toHaveLength(1);
    } finally {
      await other.query("rollback");
      other.release();
    }
    expect(await one("select count(*)::int as n from curfew.claims")).toEqual({ n: 1 });
    expect(await store.jobs.claim(claim)).toHaveLength(1);
  });

  it("a cancel and a claim at once: each job goes to exactly one of them", async () => {
    const store = await fresh();
    const other = await open();
    const jobs = newJobs(400);
    await store.jobs.enqueue(jobs, { now });
    const cancels = jobs.map(({ id }) => ({ job: { id, fence: 0, rev: 0, drop: true as const } }));
    const halves = [cancels.slice(0, 200), cancels.slice(200)];
    const [claimed, ...outcomes] = await Promise.all([
      store.jobs.claim({ ...claim, limit: 400 }),
      ...halves.map((half) => other.commit(half, { now })),
    ]);
    const dropped = outcomes.flat().filter(({ ok }) => ok).length;
    expect(dropped + claimed.length).toBe(400);
    // What was claimed is guarded by a new fence and revision, so a late cancel of the waiting job is lost.
    const late = await other.commit(
      claimed.map(({ id }) => ({ job: { id, fence: 0, rev: 0, drop: true as const } })),
      { now },
    );
    expect(late.every((outcome) => !outcome.ok)).toBe(true);
    expect(await one("select count(*)::int as n from curfew.jobs")).toEqual({ n: claimed.length });
  });

  it("`wait` that ends during a claim is still decided on at its time", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(1), { now });
    const at = now + 3_600_000 - 5;
    const [row] = await store.jobs.claim({ ...claim, now: at });
    expect(row?.wakeAt).toBe(now + 3_600_000);
    expect((await sweepAt(store, now + 3_600_000)).jobs.map(({ id, state }) => [id, state])).toEqual([
      [row?.id, "active"],
    ]);
  });

  it("jobs that an index counts while they are active are claimed in full", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(5, limited as never), { now });
    await store.jobs.claim(claim);
    expect(await one(UNFILED)).toEqual({ n: 0 });
  });

  it("a settle of which some writes are lost says which", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(3), { now });
    const rows = await store.jobs.claim(claim);
    const write = (fenceOf: (nth: number) => number) =>
      rows.map(({ id, fence, rev }, nth) => ({
        job: { id, fence: fence + fenceOf(nth), rev, drop: true as const },
      }));
    const none = await store.commit(
      write(() => 1),
      { now },
    );
    expect(none.map((outcome) => !outcome.ok && outcome.because)).toEqual(["lost", "lost", "lost"]);
    const some = await store.commit(
      write((nth) => nth % 2),
      { now },
    );
    expect(some.map((outcome) => outcome.ok || outcome.because)).toEqual([true, "lost", true]);
  });
});

describe("a schema from before light claims", () => {
  it("keeps its jobs and claims, and a claim by an older process cannot take a claimed job", async () => {
    const store = await fresh();
    await store.jobs.enqueue(newJobs(4), { now });
    await store.close();
    opened.length = 0;
    // What the migration added, taken away again: the tables as they were.
    await one(`drop trigger jobs_claimed_once on curfew.jobs`);
    await one(`drop function curfew.refuse_second_claim()`);
    await one(`drop table curfew.claims`);
    await one(`alter table curfew.jobs drop column claim_wake_at`);
    await one(`delete from curfew.migrations where version > ${BEFORE}`);
    const oldClaim = `
update curfew.jobs j set state = 2, wake = 0, rev = j.rev + 1, fence = (((j.fence >> 21) + 1) << 21) | 5, claimed_at = ${now},
       worker = 'old', stall_at = ${now + LEASE}, wake_at = ${now + LEASE}
 where j.id = any(array(select id from curfew.jobs where queue = 'default' and state = 1 order by queue, rank, id limit 1 for update skip locked))`;
    await one(oldClaim);
    const upgraded = await open();
    expect((await one("select max(version) as version from curfew.migrations")).version).toBe(
      MIGRATIONS.at(-1)?.version,
    );
    expect(await upgraded.jobs.claim(claim)).toHaveLength(3);
    await expect(one(oldClaim)).rejects.toThrow(/this process is older than its tables/);
    const { jobs } = await sweepAt(upgraded, now + LEASE);
    expect(jobs.map(({ state }) => state)).toEqual(["active", "active", "active", "active"]);
  });
});

describe("claimedRow", () => {
  it("is what a light claim shows", async () => {
    const store = await fresh();
    const jobs = newJobs(1);
    await store.jobs.enqueue(jobs, { now });
    const [available] = await store.jobs.load([jobs[0]?.id as string]);
    const [claimed] = await store.jobs.claim(claim);
    expect(claimed).toEqual(available && claimedRow(available, claim));
  });
});
