import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { defineJob, openEngine, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import type { System } from "../../src/ports/system.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { BETTER_SQLITE3, firstValue, NODE_SQLITE } from "../support/sqlite-drivers.ts";
import { productionSystem } from "../support/system.ts";

const NOW = 1_800_000_000_000;
const nextId = createIdSource(() => NOW, realSystem.fill);
const isLinux = process.platform === "linux";

let folder: string;
let path: string;
let driver = NODE_SQLITE;
/** The clock by which the store counts the second between two looks. */
let passed = 0;
const system: System = { ...productionSystem, monotonic: () => realSystem.monotonic() + passed };
const stores: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-lost-"));
  path = join(folder, "curfew.db");
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

async function open(at = path): Promise<Store> {
  const store = await openSqliteStore({ path: at, system, binding: driver.binding });
  stores.push(store);
  return store;
}

function enqueue(store: Store) {
  return store.jobs.enqueue([sketchJob({}, NOW, nextId)], { now: NOW });
}

const lost = (says: RegExp) => ({ code: "store_failed", message: expect.stringMatching(says) });

const ALL = ["", "-wal", "-shm"];

function move(from: string, to: string): void {
  for (const end of ALL) renameSync(from + end, to + end);
}

function remove(): void {
  for (const end of ALL) unlinkSync(path + end);
}

/** What happens to the file, and what the error says. */
const LOSSES: readonly (readonly [what: string, happen: () => void, says: RegExp])[] = [
  ["deleted", remove, /was deleted or moved/],
  ["deleted without its log", () => unlinkSync(path), /was deleted or moved/],
  ["moved", () => move(path, `${path}2`), /moved/],
  [
    "moved with its folder",
    () => {
      renameSync(folder, `${folder}2`);
      mkdirSync(folder);
      copyFileSync(join(`${folder}2`, "curfew.db"), path);
      rmSync(`${folder}2`, { recursive: true });
    },
    /was replaced by another file/,
  ],
  [
    "replaced",
    () => {
      copyFileSync(path, `${path}2`);
      renameSync(`${path}2`, path);
    },
    /was replaced by another file.*restoreSqlite/,
  ],
  ["robbed of its log", () => unlinkSync(`${path}-wal`), /lost its log/],
];

const PAIRS = [
  { driver: NODE_SQLITE, another: BETTER_SQLITE3 },
  { driver: BETTER_SQLITE3, another: NODE_SQLITE },
];

describe.each(PAIRS)("a SQLite file that is lost while it is open, on $driver.name", ({ driver: given }) => {
  beforeEach(() => {
    driver = given;
  });

  it.each(LOSSES)("acknowledges nothing more after it was %s", async (_, happen, says) => {
    const store = await open();
    await enqueue(store);
    happen();
    await expect(enqueue(store)).rejects.toMatchObject(lost(says));
    await expect(depthOf(store)).rejects.toMatchObject(lost(says));
  });

  it.each(LOSSES)("notices at rest, within a second, that it was %s", async (_, happen, says) => {
    const store = await open();
    await enqueue(store);
    happen();
    passed += 1_001;
    await expect(depthOf(store)).rejects.toMatchObject(lost(says));
    const claim = { queue: "default", limit: 1, now: NOW, lease: 1, salt: 1, worker: "w", from: 0 };
    await expect(store.jobs.claim(claim)).rejects.toMatchObject(lost(says));
  });

  it("is not written by the store that lost it, and neither is the log of the next one", async () => {
    const store = await open();
    await enqueue(store);
    for (const end of ALL) copyFileSync(path + end, `${path}2${end}`);
    move(`${path}2`, path);
    unlinkSync(`${path}-shm`);
    await expect(enqueue(store)).rejects.toMatchObject(lost(/was replaced/));
    const next = await open();
    await enqueue(next);
    await stores.shift()?.close();
    await enqueue(next);
    expect((await depthOf(next)).available).toBe(3);
  });

  it("is refused where a restore replaces it while it is being opened", async () => {
    await enqueue(await open());
    await stores.pop()?.close();
    copyFileSync(path, `${path}2`);
    const restoring = driver.open(path);
    restoring.exec("pragma locking_mode = exclusive; pragma journal_mode = delete; begin exclusive");
    const opening = open();
    opening.catch(() => {});
    // A real wait: the opening has the old file by now, and tries every few milliseconds whether it is free.
    await new Promise((resolve) => setTimeout(resolve, 100));
    renameSync(`${path}2`, path);
    restoring.exec("commit");
    restoring.close();
    await expect(opening).rejects.toMatchObject(lost(/was replaced or deleted while it was being opened/));
    await enqueue(await open());
    expect((await depthOf(await open())).available).toBe(2);
  });

  it("makes its workers unready, and is reported", async () => {
    await using engine = await openEngine({ store: `sqlite:${path}`, logger: silentLogger });
    const ping = defineJob({ type: "ping" });
    const failure = Promise.withResolvers<unknown>();
    engine.on("store.error", ({ during, error }) => during === "claim" && failure.resolve(error));
    const worker = engine.work({ processors: [processor(ping, () => {})] });
    await (await engine.enqueue(ping, null)).result();
    expect(worker.status().ready).toBe(true);
    remove();
    expect(await failure.promise).toMatchObject(lost(/was deleted or moved/));
    expect(worker.status().ready).toBe(false);
  });

  it("may be named by a link, and its log is beside the file itself", async () => {
    const link = join(folder, "link.db");
    await (await open()).close();
    symlinkSync(path, link);
    const store = await open(link);
    await enqueue(store);
    expect((await depthOf(store)).available).toBe(1);
  });
});

describe.each(PAIRS)(
  "another copy of SQLite in the process, beside $driver.name",
  ({ driver: given, another }) => {
    beforeEach(() => {
      driver = given;
    });

    it("never makes the store acknowledge what is gone after a restart", async () => {
      const store = await open();
      const acknowledged: string[] = [];
      const add = async () => {
        const job = sketchJob({}, NOW, nextId);
        await store.jobs.enqueue([job], { now: NOW });
        acknowledged.push(job.id);
      };
      await add();
      const other = another.open(path);
      firstValue(other, "select count(*) from curfew_jobs");
      other.close();
      for (let round = 0; round < 5; round++) await add().catch(() => {});
      await stores.pop()?.close();
      const rows = await (await open()).jobs.load(acknowledged);
      expect(rows.filter((row) => row === null)).toEqual([]);
      expect(acknowledged).toHaveLength(1);
    });

    it("that began a new log keeps what it wrote when the store closes", async () => {
      const store = await open();
      await enqueue(store);
      another.open(path).close();
      const other = another.open(path);
      firstValue(other, "select count(*) from curfew_jobs");
      other.close();
      const third = another.open(path);
      third.exec("create table theirs (a); insert into theirs values (1)");
      await expect(enqueue(store)).rejects.toMatchObject(
        lost(/lost its log.*openSqliteStore\(\{ database \}\)/),
      );
      const log = statSync(`${path}-wal`).ino;
      await stores.pop()?.close();
      expect(statSync(`${path}-wal`, { throwIfNoEntry: false })?.ino).toBe(log);
      expect(firstValue(third, "select count(*) from theirs")).toBe(1);
      third.close();
      const handle = driver.open(path);
      expect(firstValue(handle, "pragma integrity_check")).toBe("ok");
      expect(firstValue(handle, "select count(*) from theirs")).toBe(1);
      handle.close();
    });

    it.runIf(isLinux)("is noticed while it has the file open, before it does harm", async () => {
      const store = await open();
      const other = another.open(path);
      firstValue(other, "select count(*) from curfew_jobs");
      passed += 1_001;
      await expect(depthOf(store)).rejects.toMatchObject(lost(/another copy of SQLite in this process/));
      other.close();
    });

    it.runIf(isLinux)("and every read of the file is noticed, because it drops the locks", async () => {
      const store = await open();
      await enqueue(store);
      readFileSync(path);
      passed += 1_001;
      await expect(depthOf(store)).rejects.toMatchObject(lost(/lost its locks/));
    });

    it("is not suspected where the same copy opens and closes the file", async () => {
      const store = await open();
      for (let round = 0; round < 3; round++) {
        const handle = driver.open(path);
        firstValue(handle, "select count(*) from curfew_jobs");
        passed += 1_001;
        await enqueue(store);
        handle.close();
        passed += 1_001;
        await enqueue(store);
      }
      expect((await depthOf(store)).available).toBe(6);
    });
  },
);
