import { createHash } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { openRefused } from "../../examples/orms/refused.ts";
import { defineJob, type Engine, openEngine, silentLogger, type Transaction } from "../../src/index.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

const ping = defineJob({ type: "ping" });

let database: TestPostgres;
let engine: Engine;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  engine = await openEngine({ store: database.url, logger: silentLogger });
});

afterAll(async () => {
  await engine.close();
  await database[Symbol.asyncDispose]();
});

async function openClient(): Promise<pg.Client> {
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const exists = async (id: string) => (await engine.job(id).load()) !== null;

describe("what is no open transaction", () => {
  it("is refused before anything is written, with what to pass", async () => {
    const { refused, close } = await openRefused(database.url);
    onTestFinished(close);
    const before = await engine.queues.depth();
    for (const { name, tx, says } of refused) {
      const calls = [
        () => engine.enqueue(ping, null, { tx }),
        () => engine.timeouts.insert({ destination: "x", dueAt: "1h" }, { tx }),
        () => engine.timeouts.cancel({ id: "x" }, { tx }),
      ];
      for (const call of calls) {
        const error: unknown = await call().catch((thrown: unknown) => thrown);
        expect(error, name).toMatchObject({ code: "invalid_option", field: "options.tx" });
        expect((error as Error).message, name).toMatch(says);
      }
    }
    expect(await engine.queues.depth()).toEqual(before);
    expect(await engine.timeouts.count()).toMatchObject({ pending: 0 });
  });

  it("is noticed by the server if the driver does not tell", async () => {
    const client = await openClient();
    // As an older version of pg, and as any library whose statements are texts.
    const tx: Transaction = { rows: async (text, values) => (await client.query(text, [...values])).rows };
    await expect(engine.enqueue(ping, null, { tx })).rejects.toThrow(/without a transaction/);
    await client.query("begin");
    const { id } = await engine.enqueue(ping, null, { tx });
    expect(await exists(id)).toBe(false);
    await client.query("commit");
    expect(await exists(id)).toBe(true);
    await expect(engine.enqueue(ping, null, { tx })).rejects.toThrow(/without a transaction/);
  });

  it("is not taken for one while its begin or its commit is on the way", async () => {
    const tx = await openClient();
    const begun = tx.query("begin");
    const { id } = await engine.enqueue(ping, null, { tx });
    await begun;
    expect(await exists(id)).toBe(false);
    const committed = tx.query("commit");
    await expect(engine.enqueue(ping, null, { tx })).rejects.toThrow(/without a transaction/);
    await committed;
    expect(await exists(id)).toBe(true);
  });
});

describe("a transaction of the caller's", () => {
  it("that has failed is refused, and no statement is repeated in it", async () => {
    const tx = await openClient();
    await tx.query("begin");
    await expect(tx.query("select 1 / 0")).rejects.toThrow();
    const texts = recordTexts(tx);
    await expect(engine.enqueue(ping, null, { tx })).rejects.toThrow(/a failed transaction.*roll it back/);
    // Until the server is ready again, pg does not know that the transaction failed: then the proof is asked for.
    expect(texts.filter((text) => !text.startsWith("lock table"))).toEqual([]);
    expect(texts.length).toBeLessThanOrEqual(1);
    await tx.query("rollback");
  });

  it("fails with the call whose statement failed, which is sent once", async () => {
    const tx = await openClient();
    await tx.query("begin");
    await tx.query("set local lock_timeout = 1");
    const other = await openClient();
    await other.query("begin; lock table curfew.jobs in access exclusive mode");
    const texts = recordTexts(tx);
    await expect(engine.enqueue(ping, null, { tx })).rejects.toMatchObject({ code: "store_failed" });
    await other.query("rollback");
    expect(texts.filter((text) => /insert into/.test(text))).toHaveLength(1);
    await expect(engine.enqueue(ping, null, { tx })).rejects.toThrow(/a failed transaction/);
    await tx.query("rollback");
    await tx.query("begin");
    const { id } = await engine.enqueue(ping, null, { tx });
    await tx.query("commit");
    expect(await exists(id)).toBe(true);
  });

  it("takes a job back with a savepoint, and keeps those around it", async () => {
    const tx = await openClient();
    await tx.query("begin");
    const first = await engine.enqueue(ping, 1, { tx });
    await tx.query("savepoint here");
    const undone = await engine.enqueue(ping, 2, { tx });
    await tx.query("rollback to savepoint here");
    const last = await engine.enqueue(ping, 3, { tx });
    await tx.query("commit");
    expect(await Promise.all([first, undone, last].map(({ id }) => exists(id)))).toEqual([true, false, true]);
  });

  it("costs two statements for a job: its row and its hint", async () => {
    const tx = await openClient();
    await tx.query("begin");
    await engine.enqueue(ping, null, { tx });
    const texts = recordTexts(tx);
    await engine.enqueue(ping, null, { tx });
    expect(texts).toHaveLength(2);
    await tx.query("rollback");
  });

  it("sends its hints when it commits, and none if it is rolled back", async () => {
    const listener = await openClient();
    const heard: string[] = [];
    listener.on("notification", ({ payload = "" }) => void heard.push(payload));
    await listener.query(`listen "${hintChannel()}"`);
    const hints = () => heard.filter((payload) => payload.includes("of-tx")).length;
    const tx = await openClient();
    for (const [end, count] of [
      ["rollback", 0],
      ["commit", 1],
    ] as const) {
      await tx.query("begin");
      await engine.enqueue(ping, null, { tx, queue: "of-tx" });
      expect(hints()).toBe(0);
      await tx.query(end);
      // A notification is sent before the answer to a later statement of its listener.
      await listener.query("select 1");
      expect(hints()).toBe(count);
    }
  });

  it("is not counted or announced before its commit: a worker does that when it runs the job", async () => {
    const announced: string[] = [];
    const forget = engine.on("job.enqueued", ({ id }) => void announced.push(id));
    const before = engine.counters();
    const tx = await openClient();
    await tx.query("begin");
    await engine.enqueue(ping, null, { tx });
    await tx.query("rollback");
    await new Promise(setImmediate);
    forget();
    expect(announced).toEqual([]);
    expect(engine.counters()).toEqual(before);
  });
});

/** The texts that a client sends from now on. */
function recordTexts(client: pg.Client): string[] {
  const texts: string[] = [];
  const query = client.query.bind(client) as (...all: unknown[]) => unknown;
  const recorded = (...all: unknown[]) => {
    const [first] = all;
    texts.push(typeof first === "string" ? first : (first as { text: string }).text);
    return query(...all);
  };
  Object.assign(client, { query: recorded });
  return texts;
}

function hintChannel(): string {
  return `curfew_${createHash("sha256").update("curfew").digest("hex").slice(0, 16)}`;
}
