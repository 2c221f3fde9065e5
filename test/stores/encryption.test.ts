import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterEach, describe, expect, inject, it } from "vitest";
import {
  chain,
  constant,
  defineJob,
  type EncryptionOptions,
  openEngine,
  processor,
  silentLogger,
  step,
  unchecked,
} from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const key = () => randomBytes(32);
const SECRET = "pan-4111111111111111";
const SWAPPED = key().toString("base64");
const text = unchecked<{ pan: string }>();
const charge = defineJob({
  type: "card.charge",
  payload: text,
  result: text,
  retry: { attempts: 2, backoff: constant({ first: "1ms" }) },
});

interface Bed {
  readonly url: string;
  /** Everything that the database has, as text. */
  dump(): Promise<string>;
}

const BEDS: Record<string, () => Promise<Bed>> = {
  async SQLite() {
    const folder = await mkdtemp(join(tmpdir(), "curfew-sealed-"));
    closers.push(() => rm(folder, { recursive: true }));
    const dump = async () => {
      const files = await readdir(folder);
      return (await Promise.all(files.map((file) => readFile(join(folder, file), "latin1")))).join("");
    };
    return { url: `sqlite:${join(folder, "jobs.db")}`, dump };
  },
  async PostgreSQL() {
    const database = await createDatabase(inject("postgresUrl"));
    closers.push(() => database[Symbol.asyncDispose]() as Promise<void>);
    const dump = async () => {
      const client = new pg.Client(database.url);
      await client.connect();
      const { rows } = await client.query(
        "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
      );
      let all = "";
      for (const { name } of rows)
        all += JSON.stringify((await client.query(`select t::text from ${name} t`)).rows);
      await client.end();
      return all;
    };
    return { url: database.url, dump };
  },
};

async function openWith(url: string, encryption?: EncryptionOptions) {
  const engine = await openEngine({ store: url, logger: silentLogger, ...(encryption && { encryption }) });
  closers.push(() => engine.close({ drain: "0s" }));
  return engine;
}

describe.each(Object.entries(BEDS))("14 encryption at rest, %s", (_name, open) => {
  it("nothing of payload, result, checkpoint and progress is in the database, and handlers get it all", async () => {
    const { url, dump } = await open();
    const engine = await openWith(url, { keys: { k1: key() }, current: "k1" });
    const seen: unknown[] = [];
    engine.work({
      processors: [
        processor(charge, async ({ payload, attempt, progress, checkpoint, lastCheckpoint }) => {
          seen.push([payload, lastCheckpoint]);
          progress(0.5, { note: SECRET });
          await checkpoint({ at: SECRET });
          if (attempt === 1) throw new Error("again");
          return { pan: payload.pan };
        }),
      ],
    });
    const job = await engine.enqueue(charge, { pan: SECRET });
    const waiting = await engine.enqueueMany(charge, [{ pan: `${SECRET}-2` }], { delay: "1h" });
    expect(await job.result({ within: "1m" })).toEqual({ pan: SECRET });
    expect(seen).toEqual([
      [{ pan: SECRET }, undefined],
      [{ pan: SECRET }, { at: SECRET }],
    ]);
    const view = await job.load();
    expect([view?.payload, view?.result, view?.checkpoint]).toEqual([
      { pan: SECRET },
      { pan: SECRET },
      { at: SECRET },
    ]);
    expect((await waiting[0]?.load())?.payload).toEqual({ pan: `${SECRET}-2` });
    const stored = await dump();
    expect(stored).toContain(job.id);
    expect(stored).toContain("$curfew.sealed");
    expect(stored).not.toContain(SECRET);
  });

  it("the engine of a tenant encrypts with the keys of the engine that opened it", async () => {
    const { url, dump } = await open();
    const engine = await openWith(url, { keys: { k1: key() }, current: "k1" });
    const tenant = await engine.tenant("acme");
    tenant.work({ processors: [processor(charge, ({ payload }) => payload)] });
    const job = await tenant.enqueue(charge, { pan: SECRET });
    expect(await job.result({ within: "1m" })).toEqual({ pan: SECRET });
    const stored = await dump();
    expect(stored).toContain("$curfew.sealed");
    expect(stored).not.toContain(SECRET);
  });

  it("keys are rotated: old documents open, new ones are under the new key, and a lost key loses no job", async () => {
    const { url } = await open();
    const [old, young] = [key(), key()];
    const first = await openWith(url, { keys: { old }, current: "old" });
    const job = await first.enqueue(charge, { pan: SECRET });
    // This worker does not have the old key: it gives the job back, and spends no attempt.
    const blind = await openWith(url, { keys: { young }, current: "young" });
    const released = Promise.withResolvers<void>();
    blind.on("job.released", () => released.resolve());
    const worker = blind.work({ processors: [processor(charge, ({ payload }) => payload)] });
    await released.promise;
    await worker.close();
    const row = await blind.job(job.id).load();
    expect([row?.state, row?.attempt, row?.payload]).toMatchObject([
      "scheduled",
      0,
      { "$curfew.sealed": "old" },
    ]);
    const why = (await blind.why(job.id)).reasons.find(({ code }) => code === "given_back");
    expect(why?.sentence).toContain('has no key "old" for its payload');
    expect(why?.action.text).toContain('"old" in encryption.keys');
    const both = await openWith(url, { keys: { old, young }, current: "young" });
    both.work({ processors: [processor(charge, ({ payload }) => payload)] });
    await both.job(job.id).runNow();
    expect(await both.job(job.id, charge).result({ within: "1m" })).toEqual({ pan: SECRET });
    expect((await blind.job(job.id).load())?.result).toEqual({ pan: SECRET });
    await expect(first.job(job.id, charge).result({ within: "1m" })).rejects.toMatchObject({
      code: "key_missing",
    });
  });
});

describe("14 what is bound to a document", () => {
  it("a payload that somebody moved to another job, or changed, does not open", async () => {
    const { url } = await (BEDS.SQLite as () => Promise<Bed>)();
    const engine = await openWith(url, { keys: { k: key() }, current: "k" });
    const once = { retry: { attempts: 1 }, delay: "1h" } as const;
    const [a, b, c] = [
      await engine.enqueue(charge, { pan: "a" }, once),
      await engine.enqueue(charge, { pan: "b" }, once),
      await engine.enqueue(charge, { pan: "c" }, once),
    ];
    const database = new DatabaseSync(url.slice("sqlite:".length), { timeout: 20_000 });
    const table = database
      .prepare(
        "select name from sqlite_master where type = 'table' and sql like '%payload%' and sql like '%queue%'",
      )
      .get() as { name: string };
    const payloadOf = (id: string) =>
      (database.prepare(`select payload from ${table.name} where id = ?`).get(id) as { payload: string })
        .payload;
    const write = (id: string, payload: string) =>
      database.prepare(`update ${table.name} set payload = ? where id = ?`).run(payload, id);
    // The whole document of another job; its text under this job's id; and one changed byte.
    const [ofA, ofB, ofC] = [a, b, c].map(({ id }) => payloadOf(id)) as [string, string, string];
    write(a.id, ofB);
    write(b.id, ofA.replace(a.id, b.id));
    write(
      c.id,
      ofC.replace(/"data":"(.)/, (_all, first) => `"data":"${first === "A" ? "B" : "A"}`),
    );
    database.close();
    let entered = 0;
    const handler = ({ payload }: { readonly payload: { pan: string } }) => {
      entered += 1;
      return payload;
    };
    engine.work({ processors: [processor(charge, handler)] });
    for (const { id } of [a, b, c]) {
      await engine.job(id).runNow();
      const error = await engine
        .job(id, charge)
        .result({ within: "1m" })
        .catch((thrown) => thrown);
      expect(error.message).toMatch(/somebody moved it|does not open/);
      expect(error.message).not.toContain("pan");
    }
    expect(entered).toBe(0);
  });

  it("a result that somebody moved to another job does not open", async () => {
    const { url } = await (BEDS.SQLite as () => Promise<Bed>)();
    const encryption = { keys: { k: key() }, current: "k" };
    const engine = await openWith(url, encryption);
    engine.work({ processors: [processor(charge, ({ payload }) => payload)] });
    const [a, b] = [await engine.enqueue(charge, { pan: "a" }), await engine.enqueue(charge, { pan: "b" })];
    await Promise.all([a, b].map((job) => job.result({ within: "1m" })));
    const database = new DatabaseSync(url.slice("sqlite:".length), { timeout: 20_000 });
    const table = database
      .prepare("select name from sqlite_master where type = 'table' and sql like '%result%'")
      .all();
    for (const { name } of table as { name: string }[])
      database
        .prepare(`update ${name} set result = (select result from ${name} where id = ?) where id = ?`)
        .run(b.id, a.id);
    database.close();
    // Another engine: the one that ran the job may still answer with what it has in memory.
    const reader = await openWith(url, encryption);
    await expect(reader.job(a.id, charge).result({ within: "1m" })).rejects.toMatchObject({
      code: "unsealed",
    });
    expect((await reader.job(a.id, charge).load())?.result).toMatchObject({ "$curfew.sealed": "k" });
    expect(await reader.job(b.id, charge).result({ within: "1m" })).toEqual({ pan: "b" });
  });

  it("unique keys of encrypted payloads are found, under a hash with a secret", async () => {
    const { url } = await (BEDS.SQLite as () => Promise<Bed>)();
    const keys = { a: key(), b: key() };
    const engine = await openWith(url, { keys, current: "a" });
    const sync = defineJob({ type: "sync", payload: text, unique: { payload: ["pan"] } });
    const first = await engine.enqueue(sync, { pan: SECRET });
    expect(await engine.enqueue(sync, { pan: SECRET })).toMatchObject({ id: first.id, duplicate: true });
    // After a rotation the same key hashes, because it is still the first.
    const rotated = await openWith(url, { keys, current: "b" });
    expect(await rotated.enqueue(sync, { pan: SECRET })).toMatchObject({ id: first.id, duplicate: true });
    const other = await openWith(url, { keys, current: "b", unique: "b" });
    expect((await other.enqueue(sync, { pan: SECRET })).duplicate).toBe(false);
  });

  it("steps of a workflow get the results of the steps before them", async () => {
    const { url, dump } = await (BEDS.SQLite as () => Promise<Bed>)();
    const engine = await openWith(url, { keys: { k: key() }, current: "k" });
    const second = defineJob({ type: "second", payload: text, result: unchecked<readonly unknown[]>() });
    engine.work({
      processors: [
        processor(charge, ({ payload }) => payload),
        processor(second, ({ parentResults }) => parentResults as never),
      ],
    });
    const flow = await engine.workflows.start(
      chain([step(charge, { pan: SECRET }), step(second, { pan: SECRET })]),
    );
    await flow.result({ within: "1m" });
    const steps = await flow.steps();
    expect(steps.at(-1)?.type).toBe("second");
    const last = await engine.job(steps.at(-1)?.id as string).load();
    expect(last?.result).toEqual([{ pan: SECRET }]);
    expect(await dump()).not.toContain(SECRET);
  });

  it("a document that is too large when it is encrypted is refused, and fails its attempt", async () => {
    const { url } = await (BEDS.SQLite as () => Promise<Bed>)();
    const engine = await openEngine({
      store: url,
      logger: silentLogger,
      documentLimit: 1_000,
      encryption: { keys: { k: key() }, current: "k" },
    });
    closers.push(() => engine.close({ drain: "0s" }));
    const large = { pan: "x".repeat(900) };
    await expect(engine.enqueue(charge, large)).rejects.toThrow("payload");
    engine.work({ processors: [processor(charge, () => large)] });
    const job = await engine.enqueue(charge, { pan: "small" });
    const error = await job.result({ within: "1m" }).catch((thrown) => thrown);
    expect(error.message).toContain("characters when it is encrypted");
  });

  it("refuses keys that are none, and shows none of their bytes", async () => {
    const bytes = Buffer.from("not-a-key-of-32-bytes");
    const wrong: [unknown, string][] = [
      [{ keys: {}, current: "a" }, "encryption.keys"],
      [{ keys: { a: bytes }, current: "a" }, "encryption.keys.a"],
      [{ keys: { a: bytes.toString("base64") }, current: "a" }, "encryption.keys.a"],
      [{ keys: { a: key() }, current: "b" }, "encryption.current"],
      [{ keys: { a: key() }, current: "a", unique: "b" }, "encryption.unique"],
      [{ keys: { "a b": key() }, current: "a b" }, "encryption.keys"],
      [{ keys: { a: key() }, current: "a", iv: 1 }, "iv"],
      // A key in the place of its name.
      [{ keys: { [SWAPPED]: "a" }, current: "a" }, "encryption.keys"],
      [{ keys: { a: SWAPPED }, current: SWAPPED }, "encryption.current"],
    ];
    for (const [encryption, field] of wrong) {
      const error = await openEngine({
        store: "memory:",
        logger: silentLogger,
        encryption: encryption as never,
      }).catch((thrown) => thrown);
      expect(error.message).toContain(field);
      expect(error.message).not.toContain(bytes.toString("base64"));
      expect(error.message).not.toContain("not-a-key");
      expect(error.message).not.toContain(SWAPPED);
    }
  });
});
