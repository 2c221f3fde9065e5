import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  backupSqlite,
  defineJob,
  type Engine,
  openEngine,
  openSqliteStore,
  processor,
  type SqliteDatabase,
  silentLogger,
} from "../../src/index.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { fileFolder } from "../support/folders.ts";

const require = createRequire(import.meta.url);
const ping = defineJob({ type: "ping" });

const copies = fileFolder();
/** better-sqlite3 once more, as a second copy in the tree of a user's dependencies is. */
let OtherDatabase: typeof Database;

beforeAll(() => {
  const original = dirname(require.resolve("better-sqlite3/package.json"));
  for (const part of ["package.json", "lib", "prebuilds"]) {
    cpSync(join(original, part), join(copies, part), { recursive: true });
  }
  OtherDatabase = require(copies) as typeof Database;
});

let folder: string;
let path: string;
const engines: Engine[] = [];
const handles: { close(): unknown }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-own-"));
  path = join(folder, "curfew.db");
});

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close({ drain: "0s" });
  for (const handle of handles.splice(0)) handle.close();
  rmSync(folder, { recursive: true });
});

type Own = { exec(script: string): unknown; close(): unknown } & SqliteDatabase;

const KINDS: readonly (readonly [kind: string, make: (at: string) => Own])[] = [
  ["better-sqlite3", (at) => new Database(at)],
  ["another copy of better-sqlite3", (at) => new OtherDatabase(at)],
  ["node:sqlite", (at) => new DatabaseSync(at)],
];

function own(make: (at: string) => Own, at = path): Own {
  const handle = make(at);
  handles.push(handle);
  return handle;
}

async function open(options: { path: string } | { database: SqliteDatabase }): Promise<Engine> {
  const engine = await openEngine({ store: await openSqliteStore(options), logger: silentLogger });
  engines.push(engine);
  return engine;
}

describe.each(KINDS)("a store on a database of the user's: %s", (_kind, make) => {
  it("works, and shares its transactions", async () => {
    const database = own(make);
    const engine = await open({ database });
    engine.work({ processors: [processor(ping, () => "pong")] });
    expect(await (await engine.enqueue(ping, null)).result()).toBe("pong");
    database.exec("create table orders (id); begin immediate; insert into orders values (1)");
    const kept = await engine.enqueue(ping, null, { tx: database });
    database.exec("commit");
    expect(await kept.result()).toBe("pong");
    database.exec("begin immediate");
    const undone = await engine.enqueue(ping, null, { tx: database });
    database.exec("rollback");
    expect(await engine.store.jobs.load([undone.id])).toEqual([null]);
  });

  it("loses nothing when the user closes the database, and is backed up", async () => {
    const database = own(make);
    const engine = await open({ database });
    await engine.enqueue(ping, null);
    handles.pop()?.close();
    await engine.enqueue(ping, null);
    const copy = join(folder, "copy.db");
    await backupSqlite(engine, copy);
    await engine.enqueue(ping, null);
    await engines.pop()?.close({ drain: "0s" });
    expect((await depthOf((await open({ path })).store)).available).toBe(3);
    expect((await depthOf((await open({ path: copy })).store)).available).toBe(2);
  });

  it("says that another program keeps it locked, and waits for it", async () => {
    const database = own(make);
    const engine = await open({ database });
    database.exec("begin immediate");
    const waiting = engine.enqueue(ping, null);
    setImmediate(() => database.exec("commit"));
    await waiting;
    expect((await depthOf(engine.store)).available).toBe(1);
  });

  it("is refused where it is closed or in memory", async () => {
    const database = make(path);
    database.close();
    await expect(open({ database })).rejects.toThrow(/database: "a closed database"/);
    const engine = await open({ database: own(make) });
    await expect(engine.enqueue(ping, null, { tx: database })).rejects.toThrow(
      /options\.tx: .*that began the/,
    );
    await expect(open({ database: own(make, ":memory:") })).rejects.toThrow(/database in memory/);
  });
});

describe("a handle of another copy of SQLite", () => {
  const others = KINDS.filter(([kind]) => kind !== "node:sqlite");
  it.each(others)("is refused as tx, with the reason: %s", async (_kind, make) => {
    const engine = await open({ path });
    const tx = own(make);
    tx.exec("begin immediate");
    await expect(engine.enqueue(ping, null, { tx })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(/another copy of SQLite.*openSqliteStore\(\{ database \}\)/),
    });
    tx.exec("rollback");
  });

  it("is not one of a class that is derived from the store's own", async () => {
    class Shop extends DatabaseSync {}
    const engine = await open({ path });
    const tx = own((at) => new Shop(at));
    tx.exec("begin immediate");
    await engine.enqueue(ping, null, { tx });
    tx.exec("commit");
    expect((await depthOf(engine.store)).available).toBe(1);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("curfew-locks-"))).toEqual([]);
  });

  it.each([
    [42, /pass a database of better-sqlite3 or node:sqlite/],
    [{}, /pass a database of better-sqlite3 or node:sqlite/],
  ])("is not anything: %j", async (database, says) => {
    await expect(open({ database: database as unknown as SqliteDatabase })).rejects.toThrow(says);
  });
});
