import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, openEngine, silentLogger } from "../../src/index.ts";
import { LIMIT_JOBS, LIMIT_KEYS } from "../../src/stores/postgres/limit-statements.ts";
import { NEXT_LIMIT_KEY, LIMIT_JOBS as SQLITE_LIMIT_JOBS } from "../../src/stores/sqlite/limit-statements.ts";
import { createDatabase } from "../postgres.ts";

const plain = defineJob({ type: "plain" });
const limited = defineJob({ type: "limited", limit: { key: "crm", concurrency: 2 } });
const JOBS = 3_000;

/** Opens a store with many jobs, of which three have a limit: some wait for it, some do not. */
async function openFilled(store: string) {
  const engine = await openEngine({ store, logger: silentLogger });
  onTestFinished(() => engine.close());
  await engine.enqueueMany(plain, Array(JOBS).fill(null));
  await engine.enqueueMany(limited, [null, null, null]);
  return engine.store.inspect;
}

/** A page about limits is opened beside millions of jobs that have none. */
describe("what is asked about limits", () => {
  it("reads only jobs of limits on PostgreSQL", async () => {
    const database = await createDatabase(inject("postgresUrl"));
    onTestFinished(() => database[Symbol.asyncDispose]());
    const inspect = await openFilled(database.url);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("analyze curfew.jobs");
    const planOf = async (text: string, values: unknown[]) =>
      (await client.query<Record<string, string>>(`explain ${text}`, values)).rows
        .map((row) => row["QUERY PLAN"])
        .join("\n");
    for (const plan of [
      await planOf(LIMIT_KEYS.text, [null, 10]),
      await planOf(LIMIT_JOBS.text, ["crm", null, 10]),
    ]) {
      expect(plan).toContain("jobs_limited");
      expect(plan).not.toMatch(/Seq Scan on jobs|jobs_pkey/);
    }
    expect((await inspect.limitKeys(null, 10)).map(({ key }) => key)).toEqual(["crm"]);
    expect(await inspect.limitJobs("crm", null, 10)).toHaveLength(3);
  });

  it("reads only jobs of limits on SQLite", async () => {
    const folder = mkdtempSync(join(tmpdir(), "curfew-limit-plans-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "jobs.db");
    const inspect = await openFilled(`sqlite:${file}`);
    const database = new DatabaseSync(file, { readOnly: true });
    onTestFinished(() => database.close());
    for (const text of [NEXT_LIMIT_KEY, SQLITE_LIMIT_JOBS]) {
      const plan = database.prepare(`explain query plan ${text}`).all();
      const steps = plan.map(({ detail }) => String(detail)).join("\n");
      expect(steps).toContain("curfew_jobs_limited");
      expect(steps).not.toContain("SCAN curfew_jobs");
    }
    expect(await inspect.limitJobs("crm", null, 10)).toHaveLength(3);
  });
});
