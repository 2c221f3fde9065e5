import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterEach, describe, expect, inject, it } from "vitest";
import { defineJob, type Engine, openEngine, silentLogger, type Transaction } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";

interface Bed {
  readonly engine: Engine;
  readonly tx: Transaction;
  run(sql: string): Promise<unknown>;
}

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const BEDS: Record<string, () => Promise<Bed>> = {
  async SQLite() {
    const folder = await mkdtemp(join(tmpdir(), "curfew-unique-tx-"));
    const path = join(folder, "jobs.db");
    closers.push(() => rm(folder, { recursive: true }));
    const engine = await openEngine({ store: `sqlite:${path}`, logger: silentLogger });
    const tx = new DatabaseSync(path);
    closers.push(async () => tx.close());
    return { engine, tx, run: async (sql) => tx.exec(sql) };
  },
  async PostgreSQL() {
    const database = await createDatabase(inject("postgresUrl"));
    closers.push(() => database[Symbol.asyncDispose]() as Promise<void>);
    const engine = await openEngine({ store: database.url, logger: silentLogger });
    const tx = new pg.Client(database.url);
    await tx.connect();
    closers.push(() => tx.end());
    return { engine, tx, run: (sql) => tx.query(sql) };
  },
};

describe.each(Object.entries(BEDS))("unique jobs in a transaction of the caller's own, %s", (_name, open) => {
  it("hold their key if it commits, and leave nothing behind if it does not", async () => {
    const { engine, tx, run } = await open();
    closers.push(() => engine.close());
    const job = defineJob({ type: "test.unique", unique: {} });
    await run("begin");
    expect(await engine.enqueue(job, 1, { tx })).toMatchObject({ duplicate: false });
    await run("rollback");
    await run("begin");
    const kept = await engine.enqueue(job, 1, { tx });
    expect(kept).toMatchObject({ duplicate: false });
    expect(await engine.enqueue(job, 1, { tx })).toMatchObject({ id: kept.id, duplicate: true });
    await run("commit");
    expect(await engine.enqueue(job, 1)).toMatchObject({ id: kept.id, duplicate: true });
    await run("begin");
    const rejected = engine.enqueue(job, 1, { tx, unique: { onConflict: "reject" } });
    await expect(rejected).rejects.toMatchObject({ code: "duplicate_job", existing: kept.id });
    // What the transaction did besides stays its own.
    expect(await engine.enqueue(job, 2, { tx })).toMatchObject({ duplicate: false });
    await run("commit");
    expect((await engine.queues.depth()).available).toBe(2);
  });

  it("are refused where older jobs must be looked at first", async () => {
    const { engine, tx } = await open();
    closers.push(() => engine.close());
    const job = defineJob({ type: "test.unique" });
    for (const [unique, field] of [
      [{ period: "1h" }, "options.unique.period"],
      [{ states: ["active"] }, "options.unique.states"],
      [{ onConflict: "replace" }, "options.unique.onConflict"],
    ] as const) {
      await expect(engine.enqueue(job, 1, { tx, unique })).rejects.toMatchObject({ field });
      await expect(engine.enqueueMany(job, [1], { tx, unique })).rejects.toMatchObject({ field });
    }
    expect((await engine.queues.depth()).available).toBe(0);
  });
});
