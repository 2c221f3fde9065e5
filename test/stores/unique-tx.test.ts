import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterEach, describe, expect, inject, it } from "vitest";
import { defineJob, type Engine, openEngine, silentLogger, type Transaction } from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { createDatabase } from "../postgres.ts";

interface Bed {
  readonly url: string;
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
    const tx = new DatabaseSync(path, { timeout: 20_000 });
    closers.push(async () => tx.close());
    return { url: `sqlite:${path}`, engine, tx, run: async (sql) => tx.exec(sql) };
  },
  async PostgreSQL() {
    const database = await createDatabase(inject("postgresUrl"));
    closers.push(() => database[Symbol.asyncDispose]() as Promise<void>);
    const engine = await openEngine({ store: database.url, logger: silentLogger });
    const tx = new pg.Client(database.url);
    await tx.connect();
    closers.push(() => tx.end());
    return { url: database.url, engine, tx, run: (sql) => tx.query(sql) };
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

  it("are debounced: the last one wins if it commits, and nothing changed if it does not", async () => {
    const { engine, tx, run } = await open();
    closers.push(() => engine.close());
    const unique = { payload: false, debounce: { quiet: "1h" } } as const;
    const job = defineJob({ type: "test.debounced", unique });
    const first = await engine.enqueue(job, 1);
    await run("begin");
    await engine.enqueue(job, 2, { tx });
    await run("rollback");
    expect(await engine.job(first.id).load()).toMatchObject({ state: "scheduled" });
    await run("begin");
    const [, last] = await engine.enqueueMany(job, [3, 4], { tx });
    const again = engine.enqueue(job, 5, { tx });
    await expect(again).rejects.toThrow("one debounced or throttled job per key");
    await run("commit");
    expect(await engine.job(first.id).load()).toMatchObject({ state: "cancelled" });
    expect(await engine.job(last?.id as string).load()).toMatchObject({ state: "scheduled", payload: 4 });
    expect((await engine.enqueue(job, 6)).duplicate).toBe(false);
    expect((await engine.queues.depth()).scheduled).toBe(1);
  });

  it("are debounced by several engines at once: one job is left, and it is one of the last", async () => {
    const { engine, url } = await open();
    closers.push(() => engine.close());
    const other = await openEngine({ store: url, logger: silentLogger });
    closers.push(() => other.close());
    const job = defineJob({ type: "test.debounced", unique: { payload: false, debounce: { quiet: "1h" } } });
    const all = Array.from({ length: 60 }, (_, index) => (index % 2 ? engine : other).enqueue(job, index));
    await Promise.all(all);
    expect((await engine.queues.depth()).scheduled).toBe(1);
    // Each engine keeps the order of its own enqueues, so the last one is the last of one of them.
    const left = (await jobsOf(engine.store)).filter(({ state }) => state === "scheduled");
    expect(["58", "59"]).toContain(left[0]?.payload);
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
