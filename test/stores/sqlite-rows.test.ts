import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Rounds } from "../../src/core/fair/round.ts";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { Store } from "../../src/ports/store.ts";
import { KnownRows } from "../../src/stores/sqlite/known-rows.ts";
import { asHandle } from "../../src/stores/sqlite/own-database.ts";
import { rangesOf } from "../../src/stores/sqlite/row-runs.ts";
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

  it("ends jobs of two ranges, and finds one that has moved from its row", async () => {
    const { ids, units } = await claimed(40, 40);
    const some = [...units.slice(0, 12), ...units.slice(20, 32)];
    raw.exec("update curfew_jobs set rowid = 1000 where rowid = 25");
    expect(await store.commit(some, { now: NOW })).toEqual(some.map(() => ({ ok: true })));
    const left = ids.map((_, nth) => (nth >= 12 && nth < 20) || nth >= 32);
    expect(await Promise.all(ids.map(isThere))).toEqual(left);
  });

  it("ends jobs in another order, and with others between them", async () => {
    const { ids, units } = await claimed(5, 5);
    const some = [units[4], units[0], units[2]].filter((unit) => unit !== undefined);
    expect(await store.commit(some, { now: NOW })).toEqual(some.map(() => ({ ok: true })));
    expect(await Promise.all(ids.map(isThere))).toEqual([false, true, false, true, false]);
  });
});

describe.each(SQLITE_DRIVERS)("jobs of several fair keys, on $name", (driver) => {
  async function setUp(onTestFinished: (fn: () => Promise<void>) => void) {
    const folder = mkdtempSync(join(tmpdir(), "curfew-rows-"));
    const path = join(folder, "curfew.db");
    const store = await openSqliteStore({ path, system: productionSystem, binding: driver.binding });
    const raw = driver.open(path);
    onTestFinished(async () => {
      raw.close();
      await store.close();
      rmSync(folder, { recursive: true });
    });
    return { store, raw };
  }

  it("are taken in the order in which their keys came, in a round of a busy queue", async ({
    onTestFinished,
  }) => {
    const { store } = await setUp(onTestFinished);
    const block = (fairKey: string) =>
      Array.from({ length: 60 }, () => ({ ...sketchJob({}, NOW, nextId), fairKey }));
    await store.jobs.enqueue(["c", "b", "", "a"].flatMap(block), { now: NOW });
    const rounds = new Rounds();
    rounds.most = 16;
    const turns = { weights: new Map(), defaultWeight: 1, last: new Map(), rounds };
    const takes: string[] = [];
    for (let claim = 0; claim < 5; claim++) {
      const rows = await store.jobs.claim({ ...CLAIM, limit: 4, turns });
      takes.push(rows.map(({ fairKey }) => fairKey).join(","));
    }
    // Each gives four jobs in the round. Then the next round begins.
    expect(takes).toEqual(["c,c,c,c", "b,b,b,b", ",,,", "a,a,a,a", "c,c,c,c"]);
  });

  it("keep the key and payload of each, and their order", async ({ onTestFinished }) => {
    const { store, raw } = await setUp(onTestFinished);
    const keys = ["a", "a", 'quoted "b"\\', "", "line\nof c", "\u{1f600} d", "e"];
    const jobs = keys.map((fairKey, nth) => {
      const job = sketchJob({ payload: `"${fairKey.length}, ${nth}"` }, NOW, nextId);
      return { ...job, fairKey };
    });
    // A job without a key, and one whose id is not a UUID, are stored for themselves.
    const others = [
      sketchJob({ payload: '"plain"' }, NOW, nextId),
      { ...sketchJob({ payload: '"long"' }, NOW, () => `${nextId()}-long`), fairKey: "a" },
    ];
    const all = [...jobs, ...others, { ...sketchJob({}, NOW, nextId), fairKey: "last" }];
    expect(await store.jobs.enqueue(all, { now: NOW })).toEqual(all.map(() => "created"));
    const rows = await store.jobs.load(all.map(({ id }) => id));
    expect(rows.map((row) => row?.fairKey)).toEqual([...keys, null, "a", "last"]);
    expect(rows.map((row) => row?.payload)).toEqual(all.map(({ payload }) => payload));
    const session = new Session(asHandle(raw) as DatabaseHandle);
    const stored = session.all("select id from curfew_jobs order by rowid");
    expect(stored).toEqual(all.map(({ id }) => [id]));
    // A repeated call finds the ids.
    expect(await store.jobs.enqueue(jobs, { now: NOW })).toEqual(jobs.map(() => "exists"));
  });
});

describe("ranges of rows", () => {
  const upTo = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, nth) => first + nth);

  it("are the rows without a gap, if each is long enough for a statement of its own", () => {
    expect(rangesOf(upTo(3, 5))).toEqual([[3, 5]]);
    expect(rangesOf([7])).toEqual([[7, 7]]);
    expect(rangesOf([...upTo(1, 8), ...upTo(21, 28)])).toEqual([
      [1, 8],
      [21, 28],
    ]);
    expect(rangesOf([...upTo(21, 40), 1])).toEqual([
      [21, 40],
      [1, 1],
    ]);
    expect(rangesOf([...upTo(1, 8), ...upTo(21, 27)])).toBeUndefined();
    expect(rangesOf([1, 3])).toBeUndefined();
    expect(rangesOf([2, 1])).toBeUndefined();
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
