import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { defineJob, type Engine, openEngine, openPostgresStore, silentLogger } from "../../src/index.ts";
import { createServer } from "../../src/server/app.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { fileFolder } from "../support/folders.ts";

const folder = fileFolder();
let database: TestPostgres;
let opened = 0;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const note = defineJob({ type: "note.take", retention: { completed: "0s" } });
const card = defineJob({
  type: "card.charge",
  redact: ["payload.card.number", "payload.items.*.pin", "payload.we%ird_"],
});
const odd = { text: `50 % of "quotes" \\ back_slash and ünï©ode 🎈🎈🎈 end` };
const charged = (order: string) => ({
  order,
  card: { number: "4111222233334444", expires: "12/30" },
  items: [{ name: "green tea", pin: 987654 }],
  "we%ird_": "hiddenweird",
});

describe.each(["sqlite", "postgres"])("the search index of %s", (name) => {
  async function open(): Promise<Engine> {
    opened += 1;
    const store =
      name === "sqlite"
        ? `sqlite:${join(folder, `${opened}.db`)}`
        : await openPostgresStore({ connection: database.url, schema: `search_${opened}` });
    const engine = await openEngine({ store, logger: silentLogger });
    onTestFinished(async () => {
      await engine.close();
      if (typeof store !== "string") await store.close();
    });
    return engine;
  }
  const index = (engine: Engine) => {
    const { search } = engine.store;
    if (!search) throw new Error("there is no index");
    return search;
  };
  const candidates = async (engine: Engine, text: string) =>
    (await index(engine).find(text, null, 100))?.candidates.map(({ id }) => id);
  const found = async (engine: Engine, text: string) =>
    (await engine.find({ text }, { newestFirst: true })).jobs.map(({ id }) => id);

  it("finds jobs that were there before and after, live and ended, and forgets deleted ones", async () => {
    const engine = await open();
    const before = await engine.enqueue(note, odd);
    expect(await candidates(engine, "quotes")).toBeUndefined();
    await index(engine).build(() => {});
    const after = await engine.enqueue(note, { text: "after quotes" });
    const texts = ["50 % of", '"quotes', "back_slash", "🎈🎈🎈", "ünï©", "quotes"];
    for (const text of texts)
      expect(await found(engine, JSON.stringify(text).slice(1, -1)), text).toContain(before.id);
    expect(await found(engine, "quotes")).toEqual([after.id, before.id]);
    expect(await found(engine, "quotex")).toEqual([]);
    // A wildcard of SQL is a character like any other.
    expect(await found(engine, "50 _ of")).toEqual([]);
    await engine.cancel(before.id);
    expect(await candidates(engine, "quotes")).toContain(before.id);
    await engine.bulk.delete({ ids: [before.id] });
    expect(await candidates(engine, "quotes")).toEqual([after.id]);
    engine.work({ processors: [{ definition: note, handler: async () => {} }] });
    await expect.poll(() => candidates(engine, "after quotes")).toEqual([]);
    await index(engine).drop();
    expect(await candidates(engine, "quotes")).toBeUndefined();
    await index(engine).drop();
  });

  it("holds nothing that is redacted", async () => {
    const engine = await open();
    const early = await engine.enqueue(card, charged("A-1000"));
    await index(engine).build(() => {});
    const late = await engine.enqueue(card, charged("A-1001"));
    for (const text of ["4111222233334444", "2222", "987654", "hiddenweird"])
      expect(await candidates(engine, text), text).toEqual([]);
    for (const text of ["A-100", "12/30", "green tea", '"order":"A-100'])
      expect(await found(engine, text), text).toEqual([late.id, early.id]);
    await engine.enqueue(card, "everything", { redact: ["payload"] });
    expect(await candidates(engine, "everything")).toEqual([]);
  });

  it("pages through the newest first, and says over HTTP that an index did it", async () => {
    const engine = await open();
    await engine.enqueueMany(
      note,
      Array.from({ length: 130 }, (_, n) => ({ text: `needle ${n}` })),
    );
    const server = createServer(engine, { dashboard: false });
    onTestFinished(() => server.close());
    const read = async (query: string) =>
      (await (await server.fetch(new Request(`http://localhost/ojs/v1/admin/jobs?${query}`))).json()) as {
        items: { id: string }[];
        by_index: boolean;
        pagination: { next_cursor: string | null };
      };
    expect((await read("search=needle&per_page=5")).by_index).toBe(false);
    await index(engine).build(() => {});
    const ids: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await read(`search=needle&per_page=40&cursor=${encodeURIComponent(cursor)}`);
      expect(page.by_index).toBe(true);
      ids.push(...page.items.map(({ id }) => id));
      cursor = page.pagination.next_cursor;
    }
    expect(new Set(ids).size).toBe(130);
    expect(ids).toEqual([...ids].sort().reverse());
    // A text of two characters has no trigram.
    expect((await read("search=ne&per_page=5")).by_index).toBe(false);
  });

  it("finds one old job among thousands, and the pages of a text that some of them have", async () => {
    const engine = await open();
    const old = await engine.enqueue(note, { text: "rare-and-old" });
    for (const part of [0, 1, 2])
      await engine.enqueueMany(
        note,
        Array.from({ length: 900 }, (_, n) => ({ text: n % 30 === 0 ? `some ${part}` : `filler ${n}` })),
      );
    await index(engine).build(() => {});
    expect(await found(engine, "rare-and-old")).toEqual([old.id]);
    const ids: string[] = [];
    for (let after: string | null = null, pages = 0; pages < 20; pages++) {
      const page = await engine.find({ text: "some " }, { newestFirst: true, limit: 25, after });
      ids.push(...page.jobs.map(({ id }) => id));
      after = page.cursor;
      if (after === null) break;
    }
    expect(ids).toHaveLength(90);
    expect(ids).toEqual([...new Set(ids)].sort().reverse());
  });

  it("can be built while jobs come, by two builders at once", async () => {
    const engine = await open();
    await engine.enqueueMany(
      note,
      Array.from({ length: 500 }, (_, n) => ({ text: `old ${n}` })),
    );
    const coming = (async () => {
      for (let n = 0; n < 50; n++) await engine.enqueue(note, { text: `new ${n}` });
    })();
    await Promise.all([index(engine).build(() => {}), coming]);
    await index(engine).build(() => {});
    expect((await index(engine).find("old ", null, 1_000))?.candidates.length).toBe(500);
    expect((await index(engine).find("new ", null, 1_000))?.candidates.length).toBe(50);
  });
});
