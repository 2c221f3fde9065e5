import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { Store } from "../../src/ports/store.ts";
import { KnownRows } from "../../src/stores/sqlite/known-rows.ts";
import { asHandle } from "../../src/stores/sqlite/own-database.ts";
import { type DatabaseHandle, Session } from "../../src/stores/sqlite/session.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { SQLITE_DRIVERS } from "../support/sqlite-drivers.ts";
import { productionSystem } from "../support/system.ts";

const NOW = 1_800_000_000_000;
const nextId = createIdSource(() => NOW, realSystem.fill);
const CLAIM = { queue: "default", now: NOW, lease: 60_000, salt: 1, worker: "worker", from: 0 };

describe.each(SQLITE_DRIVERS)("rows of claimed jobs, on $name", (driver) => {
  let folder: string;
  let store: Store;
  let raw: ReturnType<typeof driver.open>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "curfew-rows-"));
    const path = join(folder, "curfew.db");
    store = await openSqliteStore({ path, system: productionSystem, binding: driver.binding });
    raw = driver.open(path);
  });

  afterEach(async () => {
    raw.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  /** Claims the first jobs of several. Returns the ids of all, and the units that drop what was claimed. */
  async function claimed(count: number, of: number) {
    const jobs = Array.from({ length: of }, () => sketchJob({}, NOW, nextId));
    await store.jobs.enqueue(jobs, { now: NOW });
    const rows = await store.jobs.claim({ ...CLAIM, limit: count });
    const units = rows.map(({ id, fence }) => ({ job: { id, fence, drop: true as const } }));
    return { ids: jobs.map(({ id }) => id), units };
  }

  const isThere = async (id: string) => (await store.jobs.load([id]))[0] !== null;

  it.each([1, 3])("finds %i jobs that have moved to other rows", async (count) => {
    const { ids, units } = await claimed(count, 2 * count);
    // The other half takes their place.
    raw.exec(
      `update curfew_jobs set rowid = rowid + 1000 where rowid <= ${count}; update curfew_jobs set rowid = rowid - ${count} where rowid < 1000`,
    );
    expect(await store.commit(units, { now: NOW })).toEqual(units.map(() => ({ ok: true })));
    expect(await Promise.all(ids.map(isThere))).toEqual(ids.map((_, index) => index >= count));
  });

  it("leaves a job alone that has the row of a deleted one", async () => {
    const { ids, units } = await claimed(2, 3);
    raw.exec("delete from curfew_jobs where rowid = 2; update curfew_jobs set rowid = 2 where rowid = 3");
    expect(await store.commit(units, { now: NOW })).toEqual([
      { ok: true },
      { ok: false, because: "gone", at: null },
    ]);
    expect(await Promise.all(ids.map(isThere))).toEqual([false, false, true]);
  });

  it("ends jobs in another order, and with others between them", async () => {
    const { ids, units } = await claimed(5, 5);
    const some = [units[4], units[0], units[2]].filter((unit) => unit !== undefined);
    expect(await store.commit(some, { now: NOW })).toEqual(some.map(() => ({ ok: true })));
    expect(await Promise.all(ids.map(isThere))).toEqual([false, true, false, true, false]);
  });
});

describe("known rows", () => {
  it("answers only if it knows all, and once", () => {
    const rows = new KnownRows();
    rows.set("a", 1);
    rows.set("b", 2);
    expect(rows.take(["a", "c"])).toBeUndefined();
    expect(rows.take(["b", "a"])).toEqual([2, 1]);
    expect(rows.take(["a"])).toBeUndefined();
  });

  it("forgets the oldest of many", () => {
    const rows = new KnownRows();
    for (let row = 0; row < 10_000; row++) rows.set(`job ${row}`, row);
    expect(rows.take(["job 0"])).toBeUndefined();
    expect(rows.take(["job 9999"])).toEqual([9_999]);
  });
});

describe("a statement with a limit", () => {
  // Node has it since 24.10.
  it.skipIf(!("setAuthorizer" in DatabaseSync.prototype))("is planned once for all limits", () => {
    const database = new DatabaseSync(":memory:");
    database.exec("create table numbers (n integer); insert into numbers values (1), (2), (3)");
    let planned = 0;
    (database as unknown as { setAuthorizer(each: () => number): void }).setAuthorizer(() => {
      planned += 1;
      return 0;
    });
    const session = new Session(asHandle(database) as DatabaseHandle);
    const read = (limit: number) => session.all("select n from numbers limit ? offset ?", [limit, 1]);
    expect(read(1)).toEqual([[2]]);
    const atFirst = planned;
    expect(read(5)).toEqual([[2], [3]]);
    expect(read(0)).toEqual([]);
    expect(planned).toBe(atFirst);
    database.close();
  });
});
