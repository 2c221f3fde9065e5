import pg from "pg";
import { PgBoss } from "pg-boss";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { defineJob, processor, unchecked } from "../../src/index.ts";
import { curfew } from "../cli/stage.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import {
  createSqlite,
  type ImportOptions,
  importFrom,
  jobsIn,
  neverRemoves,
  openStore,
  reasons,
} from "./support.ts";

let database: TestPostgres;
let boss: PgBoss;
let admin: pg.Client;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  await (await openStore(database.url)).close();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  boss = new PgBoss({ connectionString: database.url, supervise: false, schedule: false });
  await boss.start();
});
afterAll(async () => {
  await boss.stop({ graceful: false });
  await admin.end();
  await database[Symbol.asyncDispose]();
});

const from = (only: readonly string[], more: Partial<ImportOptions> = {}): ImportOptions => ({
  from: "pg-boss",
  source: database.url,
  store: database.url,
  only,
  ...more,
});
const leftIn = async (queue: string) =>
  (await admin.query("select id from pgboss.job where name = $1", [queue])).rowCount;

describe("an import from pg-boss", () => {
  it("moves a job in one transaction, with its priority, limits and retries", async () => {
    await boss.createQueue("mail");
    const startAfter = new Date(Date.now() + 3_600_000);
    const retry = { retryLimit: 4, retryDelay: 3, retryBackoff: true };
    const id = await boss.send(
      "mail",
      { to: "mia" },
      { priority: 7, startAfter, expireInSeconds: 90, ...retry },
    );
    const flags = ["--from", "pg-boss", "--source", database.url, "--store", database.url, "--only", "mail"];
    const dry = await curfew(["import", ...flags, "--dry-run"]);
    expect(dry).toMatchObject({ code: 0, stdout: "1 job would be moved.\n" });
    expect(await leftIn("mail")).toBe(1);
    const { code, stdout } = await curfew(["import", ...flags, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ moved: 1, is_atomic: true, is_complete: true, refused: [] });
    expect(await leftIn("mail")).toBe(0);
    expect(await jobsIn(database.url, "mail")).toMatchObject([
      {
        type: "mail",
        priority: 7,
        state: "scheduled",
        dueAt: startAfter.toISOString(),
        payload: '{"to": "mia"}',
        options: {
          meta: { importedFrom: `pg-boss:mail:${id}` },
          settings: {
            timeouts: { attempt: 90_000 },
            retry: { attempts: 5, backoff: { kind: "exponential", first: 3_000 } },
          },
        },
      },
    ]);
  });

  it("moves retries, and makes failed jobs and copies in a dead letter queue dead letters", async () => {
    await boss.createQueue("lost");
    await boss.createQueue("charge", { deadLetter: "lost", retryLimit: 0 });
    await boss.createQueue("slow", { retryLimit: 3, retryDelay: 600 });
    await boss.send("charge", { cents: 1 });
    await boss.send("slow", { n: 1 });
    for (const name of ["charge", "slow"]) {
      const [job] = await boss.fetch(name);
      await boss.fail(name, job?.id ?? "", new Error(`${name} broke`));
    }
    const report = await importFrom(from(["charge", "lost", "slow"]));
    expect(report).toMatchObject({ moved: 2, refused: [{ reason: "copied", count: 1 }] });
    expect(await leftIn("charge")).toBe(1);
    expect(await jobsIn(database.url, "charge")).toMatchObject([
      {
        state: "discarded",
        deadLetter: true,
        payload: '{"cents": 1}',
        errors: [{ message: "charge broke" }],
      },
    ]);
    expect(await jobsIn(database.url, "slow")).toMatchObject([
      { state: "retryable", attempt: 1, errors: [{ message: "slow broke", code: "imported" }] },
    ]);
  });

  it("keeps unique keys and serial keys, so that a later enqueue with the same key is a duplicate", async () => {
    await boss.createQueue("only-one", { policy: "exclusive" });
    await boss.createQueue("one-by-one", { policy: "singleton" });
    await boss.send("only-one", {}, { singletonKey: "a" });
    await boss.send("one-by-one", {}, { singletonKey: "b" });
    await importFrom(from(["only-one", "one-by-one"]));
    expect(await jobsIn(database.url, "one-by-one")).toMatchObject([
      { limitKey: "one-by-one:b", options: { limit: { concurrency: 1 } } },
    ]);
    const onlyOne = defineJob({ type: "only-one", queue: "only-one" });
    await using engine = await openStore(database.url);
    const handle = await engine.enqueue(onlyOne, undefined, { unique: { key: "a" } });
    expect(handle.duplicate).toBe(true);
  });

  it("reports names, priorities, dependencies and payloads that do not fit, and leaves refused jobs alone", async () => {
    for (const name of ["sendReport", "flow-child", "flow-parent", "odd"]) await boss.createQueue(name);
    await boss.send("sendReport", {}, { priority: 500 });
    await boss.send("odd", { text: "x".repeat(1_100_000) });
    await admin.query(
      "insert into pgboss.queue select 'bad' || chr(9), policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds, deletion_seconds, null, false, table_name from pgboss.queue where name = 'odd'",
    );
    await admin.query("insert into pgboss.job (name) values ('bad' || chr(9))");
    await admin.query(
      "insert into pgboss.job (name, blocked, pending_dependencies) values ('flow-child', true, 1)",
    );
    await admin.query("insert into pgboss.job (name, start_after) values ('odd', 'infinity')");
    const options = from(["sendReport", "flow-child", "odd", "bad\t"]);
    const dry = await importFrom({ ...options, isDry: true });
    const report = await importFrom(options);
    for (const { refused, changed, moved } of [dry, report]) {
      expect(moved).toBe(1);
      expect(reasons(refused)).toEqual({ name: 1, too_large: 1, flow: 1, invalid: 1 });
      expect(reasons(changed)).toEqual({ renamed: 2, priority: 1 });
    }
    expect(report.changed[0]?.examples[0]).toMatchObject({ detail: '"sendReport" -> "send-report"' });
    expect(await jobsIn(database.url, "send-report")).toMatchObject([{ type: "send-report", priority: 100 }]);
    expect(await leftIn("odd")).toBe(2);
    const { moved } = await importFrom(from(["bad\t"], { rename: ["bad\t=good"], into: "good" }));
    expect(moved).toBe(1);
    expect(await jobsIn(database.url, "good")).toMatchObject([{ type: "good" }]);
  });

  it("moves schedules with their zone, and names rules that it cannot write as a cron", async () => {
    await boss.createQueue("nightly");
    await boss.schedule("nightly", "30 3 * * *", { n: 1 }, { tz: "Europe/Berlin", retryLimit: 2 });
    await boss.schedule("nightly", "FREQ=DAILY;BYHOUR=9", null, { key: "rule" });
    const report = await importFrom(from(["nightly"]));
    expect(report).toMatchObject({ crons: 1, refused: [{ reason: "cron_rule", count: 1 }] });
    await using engine = await openStore(database.url);
    expect(await engine.crons.get("nightly")).toMatchObject({
      cron: "30 3 * * *",
      zone: "Europe/Berlin",
      payload: { n: 1 },
      type: "nightly",
      queue: "nightly",
      missed: "skip",
      options: { retry: { attempts: 3 } },
    });
    expect(await boss.getSchedules("nightly")).toMatchObject([{ key: "rule" }]);
  });

  it("leaves active jobs to their worker and counts them", async () => {
    await boss.createQueue("busy");
    await boss.send("busy", {});
    await boss.fetch("busy");
    await boss.send("busy", {});
    expect(await importFrom(from(["busy"]))).toMatchObject({ moved: 1, active: 1, isComplete: false });
    expect(await leftIn("busy")).toBe(1);
  });

  it("stores nothing twice in another database, even if the first copy has run and was deleted", async () => {
    await using sqlite = await createSqlite();
    await boss.createQueue("apart");
    await boss.insert("apart", [{ data: { n: 1 } }, { data: { n: 2 } }]);
    const options = from(["apart"], { store: sqlite.address });
    await expect(importFrom(options, neverRemoves)).rejects.toThrow("killed");
    expect(await leftIn("apart")).toBe(2);
    const seen: number[] = [];
    const apart = defineJob({
      type: "apart",
      queue: "apart",
      payload: unchecked<{ n: number }>(),
      retention: "0s",
    });
    {
      await using engine = await openStore(sqlite.address);
      engine.work({ processors: [processor(apart, ({ payload }) => void seen.push(payload.n))] });
      await expect.poll(() => seen.length).toBe(2);
    }
    expect(await jobsIn(sqlite.address)).toEqual([]);
    expect(await importFrom(options)).toMatchObject({
      moved: 0,
      known: 2,
      isAtomic: false,
      isComplete: true,
    });
    expect(await leftIn("apart")).toBe(0);
    expect(await jobsIn(sqlite.address)).toEqual([]);
  });

  it("undoes a batch of one database as a whole", async () => {
    await boss.createQueue("whole");
    await boss.insert("whole", [{ data: { n: 1 } }, { data: { n: 2 } }]);
    await expect(importFrom(from(["whole"]), neverRemoves)).rejects.toThrow("killed");
    expect(await jobsIn(database.url, "whole")).toEqual([]);
    expect(await leftIn("whole")).toBe(2);
  });

  it("refuses a schema without pg-boss and options of other engines", async () => {
    await expect(importFrom(from([], { schema: "nowhere" }))).rejects.toThrow("there is no table job");
    await expect(importFrom(from([], { prefix: "bull" }))).rejects.toThrow("--prefix");
    await expect(importFrom(from([], { source: "redis://localhost" }))).rejects.toThrow("postgres://");
    await expect(importFrom(from([], { rename: ["nothing"] }))).rejects.toThrow("<old name>=<new type>");
  });
});
