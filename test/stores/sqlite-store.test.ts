import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import type { NewJob } from "../../src/core/job/enqueue/envelope.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openEngine } from "../../src/index.ts";
import { type Hint, pauseKey, type Store } from "../../src/ports/store.ts";
import type { System } from "../../src/ports/system.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import * as statements from "../../src/stores/sqlite/statements.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { createSimSystem, openTestEngine } from "../../src/testing/index.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { firstValue, NODE_SQLITE, rowsOf, SQLITE_DRIVERS } from "../support/sqlite-drivers.ts";
import { productionSystem } from "../support/system.ts";

const NOW = 1_800_000_000_000;
const nextId = createIdSource(() => NOW, realSystem.fill);

let folder: string;
let path: string;
let driver = NODE_SQLITE;
const stores: Store[] = [];
const handles: { close(): unknown }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-sqlite-"));
  path = join(folder, "curfew.db");
});

afterEach(async () => {
  for (const handle of handles.splice(0)) handle.close();
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

async function open(at = path, system: System = productionSystem): Promise<Store> {
  const store = await openSqliteStore({ path: at, system, binding: driver.binding });
  stores.push(store);
  return store;
}

function rawHandle(at = path) {
  const handle = driver.open(at);
  handles.push(handle);
  return handle;
}

function jobs(count: number): NewJob[] {
  return Array.from({ length: count }, () => sketchJob({}, NOW, nextId));
}

/** A system in which the patience of seconds is over within milliseconds. */
const hasty: System = { ...productionSystem, monotonic: () => realSystem.monotonic() * 100 };

describe.each(SQLITE_DRIVERS)("opening a SQLite file, on $name", (given) => {
  beforeEach(() => {
    driver = given;
  });

  it("creates a file that only its owner can read, and the files beside it", async () => {
    const before = process.umask(0);
    try {
      const store = await open();
      await store.jobs.enqueue(jobs(1), { now: NOW });
      for (const suffix of ["", "-wal", "-shm"]) {
        expect(statSync(path + suffix).mode & 0o777, `curfew.db${suffix}`).toBe(0o600);
      }
    } finally {
      process.umask(before);
    }
  });

  it("leaves an existing file the permissions that its owner chose", async () => {
    rawHandle().exec("create table theirs (a)");
    chmodSync(path, 0o640);
    await open();
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  it("eight handles open the same new file at once", async () => {
    const many = await Promise.all(Array.from({ length: 8 }, () => open()));
    await Promise.all(many.map((store) => store.jobs.enqueue(jobs(1), { now: NOW })));
    expect((await depthOf(many[0] as Store)).available).toBe(8);
  });

  it.each([
    ["", /name a file/],
    [":memory:", /use the store "memory:"/],
    ["file:curfew.db", /plain path/],
    ["curfew.db?synchronous=off", /no acknowledged write is lost/],
  ])("refuses the path %j", async (refused, fix) => {
    await expect(open(refused)).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(fix),
    });
  });

  it("refuses virtual time, in which it would wait for ever", async () => {
    const system = createSimSystem({ seed: 1, startAt: NOW });
    const refused = { code: "invalid_option", message: expect.stringMatching(/virtual time.*memory:/) };
    await expect(open(path, system)).rejects.toMatchObject(refused);
    await expect(openEngine({ store: `sqlite:${path}`, system })).rejects.toMatchObject(refused);
    await expect(openTestEngine({ store: () => open() })).rejects.toThrow(
      /options\.store: "sqlite" .*virtual time/,
    );
  });

  const failures: readonly (readonly [what: string, spoil: () => string, says: RegExp])[] = [
    [
      "a missing folder",
      () => join(folder, "none", "curfew.db"),
      /there is no folder .*none; create it first/,
    ],
    [
      "a folder",
      () => {
        mkdirSync(path);
        return path;
      },
      /is a folder/,
    ],
    [
      "a file that is no database",
      () => {
        writeFileSync(path, "not a database ".repeat(100));
        return path;
      },
      /is not a SQLite database/,
    ],
  ];
  it.each(failures)("says what is wrong with %s", async (_, spoil, says) => {
    const at = spoil();
    const error = await open(at).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "store_failed", message: expect.stringMatching(says) });
    expect((error as Error).message).toContain(at);
  });

  it.skipIf(process.getuid?.() === 0 /* root may write everything */)(
    "says that a file cannot be written",
    async () => {
      await open();
      await stores.pop()?.close();
      chmodSync(path, 0o400);
      await expect(open()).rejects.toThrow(/cannot be written: give this user the right/);
    },
  );

  it("says that a file is damaged", async () => {
    await (await open()).jobs.enqueue(jobs(100), { now: NOW });
    await stores.pop()?.close();
    const size = statSync(path).size;
    const handle = rawHandle();
    handle.exec("pragma journal_mode = delete");
    handles.pop()?.close();
    const { openSync, writeSync, closeSync } = await import("node:fs");
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(size - 4_096, 0x5a), 0, size - 4_096, 4_096);
    closeSync(file);
    const use = async () => (await open()).jobs.load(jobs(1).map(({ id }) => id));
    await expect(use()).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringMatching(/is damaged/),
    });
  });

  it("refuses a file of a newer version and one whose tables were made by another text", async () => {
    await open();
    await stores.pop()?.close();
    const handle = rawHandle();
    handle.exec("insert into curfew_migrations values (99, 'later', 'sum', 0)");
    await expect(open()).rejects.toThrow(/curfew\.db cannot be used: .* version 99, .* update curfew/);
    handle.exec("delete from curfew_migrations where version = 99");
    handle.exec("update curfew_migrations set checksum = 'other'");
    await expect(open()).rejects.toThrow(/applied with another text/);
  });

  it("opening and writing both say that another program keeps the file locked", async () => {
    const store = await open(path, hasty);
    const handle = rawHandle();
    handle.exec("begin immediate");
    const locked = { code: "store_failed", message: expect.stringMatching(/was locked by another program/) };
    await expect(store.jobs.enqueue(jobs(1), { now: NOW })).rejects.toMatchObject(locked);
    handle.exec("rollback");
    handles.pop()?.close();
    await stores.pop()?.close();
    const exclusive = rawHandle();
    exclusive.exec("pragma locking_mode = exclusive; begin immediate; create table theirs (a); commit");
    await expect(open(path, hasty)).rejects.toMatchObject(locked);
  });
});

describe.each(SQLITE_DRIVERS)("a caller's own transaction, on $name", (given) => {
  beforeEach(() => {
    driver = given;
  });

  it("takes a job with it when it commits, and leaves nothing when it rolls back", async () => {
    const store = await open();
    const handle = rawHandle();
    handle.exec("create table orders (id integer)");
    const [kept, undone] = jobs(2) as [NewJob, NewJob];
    handle.exec("begin immediate; insert into orders values (1)");
    expect(await store.jobs.enqueue([kept], { now: NOW, tx: handle })).toEqual(["created"]);
    expect(await store.jobs.load([kept.id])).toEqual([null]);
    handle.exec("commit; begin immediate; insert into orders values (2)");
    expect(await store.jobs.enqueue([undone], { now: NOW, tx: handle })).toEqual(["created"]);
    await store.commit([{ effects: [{ put: pauseKey("q"), body: 1, wakeAt: null }] }], {
      now: NOW,
      tx: handle,
    });
    handle.exec("rollback");
    const [found, nothing] = await store.jobs.load([kept.id, undone.id]);
    expect([found?.state, nothing]).toEqual(["available", null]);
    expect(await store.records.load([pauseKey("q")])).toEqual([null]);
    expect(firstValue(handle, "select count(*) from orders")).toBe(1);
  });

  it("is heard of when it commits, by the store that wrote into it too", async () => {
    const store = await open();
    const handle = rawHandle();
    let hear!: (hint: Hint) => void;
    const heard = new Promise<Hint>((resolve) => {
      hear = resolve;
    });
    await store.listen(hear);
    handle.exec("begin immediate");
    await store.jobs.enqueue(jobs(1), { now: NOW, tx: handle });
    handle.exec("commit");
    expect(await heard).toEqual({ ready: "default" });
  });

  it("answers in numbers where the handle is set to big integers", async () => {
    const store = await open();
    const handle = driver.openWithBigIntegers(path);
    handles.push(handle);
    const [job] = jobs(1) as [NewJob];
    handle.exec("begin immediate");
    await store.jobs.enqueue([job], { now: NOW, tx: handle });
    const unit = { job: { id: job.id, fence: 5 } };
    const [outcome] = await store.commit([unit], { now: NOW, tx: handle });
    handle.exec("commit");
    expect(outcome).toEqual({ ok: false, because: "lost", at: { state: "available", fence: 0, rev: 0 } });
  });

  it("keeps the caller's work when a call in it fails", async () => {
    const store = await open();
    const handle = rawHandle();
    handle.exec("create table orders (id integer); begin immediate; insert into orders values (1)");
    const [good, bad] = jobs(2) as [NewJob, NewJob];
    const broken = { ...bad, hasNewId: false, priority: "high" as unknown as number };
    await expect(store.jobs.enqueue([good, broken], { now: NOW, tx: handle })).rejects.toThrow();
    handle.exec("commit");
    expect(firstValue(handle, "select count(*) from orders")).toBe(1);
    expect(await store.jobs.load([good.id])).toEqual([null]);
  });

  it("is refused where it is none, not this file's, or may be lost", async () => {
    const store = await open();
    const enqueue = (tx: unknown) => store.jobs.enqueue(jobs(1), { now: NOW, tx });
    await expect(enqueue({})).rejects.toThrow(/pass the better-sqlite3 or node:sqlite handle/);
    const handle = rawHandle();
    await expect(enqueue(handle)).rejects.toThrow(/begin immediate/);
    handle.exec("pragma synchronous = off");
    handle.exec("begin immediate");
    await expect(enqueue(handle)).rejects.toThrow(/synchronous = off.*acknowledged jobs can be lost/);
    handle.exec("rollback");
    const other = rawHandle(join(folder, "other.db"));
    other.exec("create table a (b); begin immediate");
    await expect(enqueue(other)).rejects.toThrow(/other\.db.*open it on .*curfew\.db/);
    await expect(enqueue(rawHandle(":memory:"))).rejects.toThrow(/no file/);
  });
});

describe.each(SQLITE_DRIVERS)("the SQLite store in its thread, on $name", (given) => {
  beforeEach(() => {
    driver = given;
  });

  it("knows its own jobs again when a call whose answer was lost is repeated", async () => {
    const store = await open();
    const batch = jobs(3);
    await store.jobs.enqueue(batch.slice(1), { now: NOW });
    expect(await store.jobs.enqueue(batch, { now: NOW })).toEqual(["created", "exists", "exists"]);
  });

  it("lets others have a turn every few milliseconds while it works through large calls", async () => {
    const store = await open(path, hasty);
    const calls = Array.from({ length: 4 }, () => jobs(1_000));
    const [turns] = await turnsOf(() =>
      Promise.all(calls.map((call) => store.jobs.enqueue(call, { now: NOW }))),
    );
    // Each call is two transactions, and the time of one is over after each.
    expect(turns).toBeGreaterThanOrEqual(8);
  });

  it("writes the jobs of one call before those of the next, which then need not wait for its sync", async () => {
    const store = await open();
    const [first, second] = [jobs(1_000), jobs(1)];
    await Promise.all([store.jobs.enqueue(first, { now: NOW }), store.jobs.enqueue(second, { now: NOW })]);
    const stored = rowsOf(rawHandle(), "select id from curfew_jobs order by rowid").map(([id]) => id);
    expect(stored).toEqual([...first, ...second].map(({ id }) => id));
  });

  it("lets others have a turn after each megabyte, whatever it does with large jobs", async () => {
    const store = await open(path, hasty);
    const payload = `"${"x".repeat(400_000)}"`;
    const large = Array.from({ length: 10 }, () => sketchJob({ payload, dueAt: NOW + 1 }, NOW, nextId));
    const ids = large.map(({ id }) => id);
    const [enqueueTurns] = await turnsOf(() => store.jobs.enqueue(large, { now: NOW }));
    const [sweepTurns] = await turnsOf(() =>
      store.jobs.sweep({ now: NOW + 1, limit: 100, holdUntil: NOW + 2 }),
    );
    const claim = { queue: "default", limit: 10, now: NOW + 1, lease: 1, salt: 1, worker: "worker", from: 0 };
    const [claimTurns, rows] = await turnsOf(() => store.jobs.claim(claim));
    expect(rows.map(({ id }) => id)).toEqual(ids);
    const [loadTurns] = await turnsOf(() => store.jobs.load(ids));
    const units = rows.map(({ id, fence }) => ({ job: { id, fence, drop: true as const } }));
    const [commitTurns, outcomes] = await turnsOf(() => store.commit(units, { now: NOW }));
    expect(outcomes).toEqual(units.map(() => ({ ok: true })));
    // Two or three of them make a megabyte.
    for (const turns of [enqueueTurns, sweepTurns, claimTurns, loadTurns, commitTurns])
      expect(turns).toBeGreaterThanOrEqual(4);
  });

  it("waits for a transaction of the same process without standing in its way", async () => {
    const store = await open();
    const handle = rawHandle();
    handle.exec("begin immediate");
    const waiting = store.jobs.enqueue(jobs(1), { now: NOW });
    setImmediate(() => handle.exec("commit"));
    expect(await waiting).toEqual(["created"]);
  });

  it("holds no more hints than it must", async () => {
    const store = await open();
    for (let round = 0; round < 1_250; round++) {
      await store.commit([{ effects: [{ enqueue: jobs(1)[0] as NewJob }] }], { now: NOW });
    }
    expect(firstValue(rawHandle(), "select count(*) from curfew_hints")).toBe(1_050);
  });

  it("walks no table in what it does all day", async () => {
    await open();
    const handle = rawHandle();
    const { CLAIMABLE, CLAIM, LOCATE, DELETE, PEEK, PAUSED, NEXT_WAKE } = statements;
    const { PROMOTABLE, PROMOTE, UNDECIDED, HOLD_DUE_JOBS, HOLD_DUE_RECORDS, ADMIT } = statements;
    const { PRUNABLE, PRUNE, PRUNE_EVENTS, READ_HINTS } = statements;
    const { byRange } = statements;
    const claiming = [
      CLAIMABLE,
      CLAIM,
      byRange(CLAIM),
      LOCATE,
      DELETE,
      byRange(DELETE),
      PEEK,
      PAUSED,
      NEXT_WAKE,
    ];
    const sweeping = [PROMOTABLE, PROMOTE, UNDECIDED, HOLD_DUE_JOBS, HOLD_DUE_RECORDS, ADMIT];
    for (const text of [...claiming, ...sweeping, PRUNABLE, PRUNE, PRUNE_EVENTS, READ_HINTS]) {
      const none = Array.from(text.matchAll(/\?/g), () => null);
      const plan = rowsOf(handle, `explain query plan ${text}`, none).map((row) => String(row.at(-1)));
      const walks = plan.filter((detail) => /^SCAN (curfew_jobs|j|curfew_done|curfew_records)$/.test(detail));
      expect(walks, text).toEqual([]);
    }
  });
});

/** How many turns of the event loop others had during the work, and what the work gave. */
async function turnsOf<Result>(work: () => Promise<Result>): Promise<[number, Result]> {
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const result = await work();
  isDone = true;
  return [turns, result];
}
