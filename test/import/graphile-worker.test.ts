import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeWorkerUtils, runOnce, type WorkerUtils } from "graphile-worker";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { defineJob, processor, unchecked } from "../../src/index.ts";
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
let pool: pg.Pool;
let utils: WorkerUtils;
let admin: pg.Client;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  await (await openStore(database.url)).close();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  pool = new pg.Pool({ connectionString: database.url });
  // A client that is still being ended when the database is dropped fails, and that must not end the process. The pool tells it
  // too, and graphile-worker no longer listens then.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  utils = await makeWorkerUtils({ pgPool: pool });
  await utils.migrate();
});
afterAll(async () => {
  await utils.release();
  await pool.end();
  await admin.end();
  await database[Symbol.asyncDispose]();
});

const from = (only: readonly string[], more: Partial<ImportOptions> = {}): ImportOptions => ({
  from: "graphile-worker",
  source: database.url,
  store: database.url,
  only,
  ...more,
});
const leftOf = async (task: string) =>
  (await admin.query("select id from graphile_worker.jobs where task_identifier = $1", [task])).rowCount;
const jobsOf = async (type: string) => (await jobsIn(database.url)).filter((job) => job.type === type);

describe("an import from graphile-worker", () => {
  it("moves a job in one transaction, with its turned priority, attempts and serial queue", async () => {
    const runAt = new Date(Date.now() + 3_600_000);
    const options = { runAt, priority: -7, maxAttempts: 4, queueName: "accounts" };
    const { id } = await utils.addJob("charge", { cents: 12345678901234567890n.toString() }, options);
    const report = await importFrom(from(["charge"]));
    expect(report).toMatchObject({ moved: 1, isAtomic: true, isComplete: true, refused: [], changed: [] });
    expect(await leftOf("charge")).toBe(0);
    expect(await jobsOf("charge")).toMatchObject([
      {
        queue: "default",
        priority: 7,
        state: "scheduled",
        dueAt: runAt.toISOString(),
        payload: '{"cents":"12345678901234567890"}',
        limitKey: "accounts",
        options: {
          limit: { concurrency: 1 },
          meta: { importedFrom: `graphile-worker:charge:${id}` },
          settings: { retry: { attempts: 4, onExhausted: "dead-letter" } },
        },
      },
    ]);
  });

  it("moves retries and jobs without attempts left, with their last error", async () => {
    await utils.addJob("broken", { n: 1 }, { maxAttempts: 1 });
    await utils.addJob("broken", { n: 2 }, { maxAttempts: 5 });
    const broken = () => Promise.reject(new Error("no network"));
    await runOnce({ pgPool: pool, taskList: { broken }, logger: quiet() });
    expect(await importFrom(from(["broken"]))).toMatchObject({ moved: 2, isComplete: true });
    const jobs = await jobsOf("broken");
    expect(jobs.find(({ payload }) => payload.includes("1"))).toMatchObject({
      state: "discarded",
      deadLetter: true,
      errors: [{ message: "no network" }],
    });
    expect(jobs.find(({ payload }) => payload.includes("2"))).toMatchObject({
      state: "retryable",
      attempt: 1,
      errors: [{ message: "no network" }],
    });
  });

  it("keeps a job key as a unique key", async () => {
    await utils.addJob("index", {}, { jobKey: "page-1", runAt: new Date(Date.now() + 60_000) });
    await importFrom(from(["index"]));
    await using engine = await openStore(database.url);
    const index = defineJob({ type: "index" });
    expect((await engine.enqueue(index, undefined, { unique: { key: "page-1" } })).duplicate).toBe(true);
    expect((await engine.enqueue(index, undefined, { unique: { key: "page-2" } })).duplicate).toBe(false);
  });

  it("renames tasks, and reports names and payloads that cannot be carried over", async () => {
    await utils.addJob("sendMail", {});
    await utils.addJob("tab\there", {});
    await utils.addJob("huge", { text: "x".repeat(1_100_000) });
    const report = await importFrom(from(["sendMail", "tab\there", "huge"]));
    expect(report).toMatchObject({ moved: 1, isComplete: false });
    expect(reasons(report.refused)).toEqual({ name: 1, too_large: 1 });
    expect(reasons(report.changed)).toEqual({ renamed: 1 });
    expect(await jobsOf("send-mail")).toHaveLength(1);
    expect(await leftOf("huge")).toBe(1);
  });

  it("leaves locked jobs to their worker and counts them", async () => {
    await utils.addJob("busy", {});
    await admin.query(
      "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w' where task_id in (select id from graphile_worker._private_tasks where identifier = 'busy')",
    );
    expect(await importFrom(from(["busy"]))).toMatchObject({ moved: 0, active: 1, isComplete: false });
    expect(await leftOf("busy")).toBe(1);
  });

  it("reads crons from the crontab file, and says which lines it cannot read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "curfew-crontab-"));
    const crontab = join(folder, "crontab");
    writeFileSync(
      crontab,
      '# nightly\n0 4 * * * cleanUp ?id=clean&fill=1d&max=3&priority=5 {"all":true}\n*/5 * * * * ping\n0 4 * * * bad {a: 1}\n',
    );
    const report = await importFrom(from(["cleanUp"], { crontab }));
    rmSync(folder, { recursive: true });
    expect(report).toMatchObject({ crons: 2, refused: [{ reason: "cron_invalid", count: 1 }] });
    await using engine = await openStore(database.url);
    expect(await engine.crons.get("clean")).toMatchObject({
      cron: "0 4 * * *",
      zone: "UTC",
      type: "clean-up",
      missed: "once",
      payload: { all: true },
      options: { priority: -5, retry: { attempts: 3 } },
    });
    expect(await engine.crons.get("ping")).toMatchObject({ cron: "*/5 * * * *", missed: "skip" });
  });

  it("keeps the order of jobs that are due at the same time, and runs them once in another database", async () => {
    await using sqlite = await createSqlite();
    await utils.addJobs(Array.from({ length: 50 }, (_, n) => ({ identifier: "count", payload: { n } })));
    const options = from(["count"], { store: sqlite.address });
    await expect(importFrom(options, neverRemoves)).rejects.toThrow("killed");
    expect(await importFrom(options)).toMatchObject({ moved: 0, known: 50, isAtomic: false });
    const seen: number[] = [];
    await using engine = await openStore(sqlite.address);
    const count = defineJob({ type: "count", payload: unchecked<{ n: number }>() });
    const processors = [processor(count, ({ payload }) => void seen.push(payload.n))];
    engine.work({ processors, queues: { default: { concurrency: 1 } } });
    await expect.poll(() => seen.length).toBe(50);
    expect(seen).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });

  it("undoes a batch of one database as a whole", async () => {
    await utils.addJob("whole", {});
    await expect(importFrom(from(["whole"]), neverRemoves)).rejects.toThrow("killed");
    expect(await jobsOf("whole")).toEqual([]);
    expect(await leftOf("whole")).toBe(1);
  });
});

function quiet() {
  const log = () => {};
  return { scope: quiet, error: log, warn: log, info: log, debug: log } as never;
}
