import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { fileFolder } from "../support/folders.ts";
import { productionSystem } from "../support/system.ts";

type Sync = (error: Error | null) => void;

/** Syncs of the log that wait for the test to end them; without a list they end at once. */
const disk = vi.hoisted(() => ({ waiting: undefined as Sync[] | undefined, syncs: 0 }));

vi.mock("node:fs", async (original) => ({
  ...(await original<typeof import("node:fs")>()),
  fdatasync: (_file: number, done: Sync) => {
    disk.syncs += 1;
    if (disk.waiting) disk.waiting.push(done);
    else setImmediate(done, null);
  },
}));

const NOW = 1_800_000_000_000;
const nextId = createIdSource(() => NOW, realSystem.fill);
const job = () => sketchJob({}, NOW, nextId);

const folder = fileFolder();
let opened = 0;

function open() {
  disk.waiting = undefined;
  opened += 1;
  return openSqliteStore({ path: join(folder, `${opened}.db`), system: productionSystem });
}

/** Long enough for everything that does not wait for the disk. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe("the disk under the SQLite store", () => {
  it("has what was acknowledged: an enqueue and a settle wait for it, a claim does not", async () => {
    const store = await open();
    disk.waiting = [];
    let isAcknowledged = false;
    const enqueue = store.jobs.enqueue([job()], { now: NOW }).then(() => {
      isAcknowledged = true;
    });
    await settled();
    expect([disk.waiting.length, isAcknowledged]).toEqual([1, false]);
    const request = { queue: "default", limit: 1, now: NOW, lease: 10_000, salt: 1, worker: "w", from: 0 };
    expect(await store.jobs.claim(request)).toHaveLength(1);
    disk.waiting.shift()?.(null);
    await enqueue;
    disk.waiting = undefined;
    await store.close();
  });

  it("is asked once for all calls that wait, and never by a sync that began before their commits", async () => {
    const store = await open();
    disk.waiting = [];
    disk.syncs = 0;
    const first = store.jobs.enqueue([job()], { now: NOW });
    await settled();
    const others = Array.from({ length: 10 }, () => store.jobs.enqueue([job()], { now: NOW }));
    await settled();
    expect(disk.syncs).toBe(1);
    disk.waiting.shift()?.(null);
    await first;
    await settled();
    expect(disk.syncs).toBe(2);
    disk.waiting.shift()?.(null);
    await Promise.all(others);
    disk.waiting = undefined;
    await store.close();
  });

  it("is not trusted again after it failed once", async () => {
    const store = await open();
    disk.waiting = [];
    const enqueue = store.jobs.enqueue([job()], { now: NOW });
    await settled();
    disk.waiting.shift()?.(new Error("EIO"));
    const refused = { code: "store_failed", message: expect.stringMatching(/synced to disk: EIO/) };
    await expect(enqueue).rejects.toMatchObject(refused);
    disk.waiting = undefined;
    await expect(store.jobs.enqueue([job()], { now: NOW })).rejects.toMatchObject(refused);
    await store.close();
  });
});
