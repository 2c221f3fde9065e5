import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  backupSqlite,
  createMemoryStore,
  defineJob,
  type Engine,
  openEngine,
  restoreSqlite,
  silentLogger,
} from "../../src/index.ts";
import { depthOf } from "../../src/testing/read-store.ts";

const ping = defineJob({ type: "ping" });

let folder: string;
let path: string;
let copy: string;
const engines: Engine[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-backup-"));
  path = join(folder, "curfew.db");
  copy = join(folder, "copy.db");
});

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close({ drain: "0s" });
  rmSync(folder, { recursive: true });
});

async function open(at = path): Promise<Engine> {
  const engine = await openEngine({ store: `sqlite:${at}`, logger: silentLogger });
  engines.push(engine);
  return engine;
}

async function close(): Promise<void> {
  await engines.pop()?.close({ drain: "0s" });
}

async function waiting(at: string): Promise<number> {
  const engine = await open(at);
  const { available } = await depthOf(engine.store);
  await close();
  return available;
}

describe("a backup of a SQLite file", () => {
  it.each(["the engine", "the path", "the address"])(
    "has one moment of a file in use, from %s",
    async (by) => {
      const engine = await open();
      await engine.enqueueMany(ping, new Array(2_000).fill(null));
      const from = { "the engine": engine, "the path": path, "the address": `sqlite:${path}` }[by] as string;
      let isDone = false;
      const copied = backupSqlite(from, copy).finally(() => {
        isDone = true;
      });
      let added = 0;
      while (!isDone) {
        // Two in one commit: a moment never has one of them.
        await engine.enqueueMany(ping, [null, null]);
        added += 2;
      }
      const { bytes } = await copied;
      expect(bytes).toBe(statSync(copy).size);
      expect(statSync(copy).mode & 0o777).toBe(0o600);
      expect(readdirSync(folder).filter((name) => name.includes("copy"))).toEqual(["copy.db"]);
      const found = await waiting(copy);
      expect(found % 2).toBe(0);
      expect(found).toBeGreaterThanOrEqual(2_000);
      expect(found).toBeLessThanOrEqual(2_000 + added);
      expect((await depthOf(engine.store)).available).toBe(2_000 + added);
    },
  );

  it("has what a killed process left in the log", async () => {
    const engine = await open();
    await engine.enqueue(ping, null);
    for (const suffix of ["", "-wal"]) writeFileSync(`${path}2${suffix}`, readFileSync(path + suffix));
    await backupSqlite(`${path}2`, copy);
    expect(await waiting(copy)).toBe(1);
  });

  it("is refused where it would replace a file, copy nothing, or copy something else", async () => {
    const engine = await open();
    const to = { code: "invalid_option", field: "to" };
    await expect(backupSqlite(engine, path)).rejects.toMatchObject(to);
    await expect(backupSqlite(engine, "")).rejects.toMatchObject(to);
    await expect(backupSqlite(engine, join(folder, "none", "a.db"))).rejects.toThrow(/no folder .*none/);
    await expect(backupSqlite(join(folder, "none.db"), copy)).rejects.toThrow(/no such file/);
    await expect(backupSqlite(createMemoryStore({ clock: () => 0 }), copy)).rejects.toThrow(
      /from: "memory" .*engine on a SQLite file/,
    );
    const other = new DatabaseSync(join(folder, "other.db"));
    other.exec("create table theirs (a)");
    other.close();
    await expect(backupSqlite(join(folder, "other.db"), copy)).rejects.toThrow(/not made by curfew/);
    expect(readdirSync(folder).filter((name) => name.includes("copy"))).toEqual([]);
  });
});

describe("a restored SQLite file", () => {
  async function prepare(): Promise<void> {
    const engine = await open();
    await engine.enqueueMany(ping, [null, null]);
    await backupSqlite(engine, copy);
    await engine.enqueue(ping, null);
  }

  it("has what the backup has, and the file that was there is kept", async () => {
    await prepare();
    await close();
    expect(await restoreSqlite(copy, path)).toEqual({ kept: `${path}.before-restore` });
    expect(await waiting(path)).toBe(2);
    expect(await waiting(`${path}.before-restore`)).toBe(3);
    expect(await restoreSqlite(copy, path)).toEqual({ kept: `${path}.before-restore-2` });
    expect(await waiting(copy)).toBe(2);
  });

  it("may be a new one", async () => {
    await prepare();
    const fresh = join(folder, "fresh.db");
    expect(await restoreSqlite(copy, fresh)).toEqual({ kept: null });
    expect(await waiting(fresh)).toBe(2);
  });

  it("gets nothing from the log that a killed process left", async () => {
    await prepare();
    const killed = join(folder, "killed.db");
    for (const suffix of ["", "-wal"]) writeFileSync(killed + suffix, readFileSync(path + suffix));
    await restoreSqlite(copy, killed);
    expect(await waiting(killed)).toBe(2);
    expect(await waiting(`${killed}.before-restore`)).toBe(3);
  });

  it("replaces a damaged one, and its log is kept beside it", async () => {
    await prepare();
    await close();
    writeFileSync(path, "damaged ".repeat(1_000));
    writeFileSync(`${path}-wal`, "the log");
    await restoreSqlite(copy, path);
    expect(await waiting(path)).toBe(2);
    expect(readFileSync(`${path}.before-restore-wal`, "utf8")).toBe("the log");
  });

  it("is refused while an engine has the file open, and nothing changes", async () => {
    await prepare();
    await expect(restoreSqlite(copy, path)).rejects.toThrow(/is in use: stop every process/);
    const [engine] = engines as [Engine];
    await engine.enqueue(ping, null);
    expect((await depthOf(engine.store)).available).toBe(4);
    expect(readdirSync(folder).filter((name) => name.startsWith(".") || name.includes("before"))).toEqual([]);
  });

  it("is refused where the backup is damaged, or the log of another file is there", async () => {
    await prepare();
    const bytes = readFileSync(copy);
    bytes.fill(0x5a, 8_192, bytes.length - 4_096);
    writeFileSync(`${copy}2`, bytes);
    await expect(restoreSqlite(`${copy}2`, join(folder, "new.db"))).rejects.toThrow(/is damaged/);
    writeFileSync(join(folder, "new.db-wal"), "another log");
    await expect(restoreSqlite(copy, join(folder, "new.db"))).rejects.toThrow(/left of another file/);
    expect(existsSync(join(folder, "new.db"))).toBe(false);
  });
});
