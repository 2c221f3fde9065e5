import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { Store } from "../../src/ports/store.ts";
import { Checkpointer } from "../../src/stores/sqlite/checkpointer.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { LOG_SIZE } from "../../src/stores/sqlite/statements.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { NODE_SQLITE, rowsOf, SQLITE_DRIVERS } from "../support/sqlite-drivers.ts";
import { productionSystem as system } from "../support/system.ts";

const NOW = 1_800_000_000_000;
const nextId = createIdSource(() => NOW, realSystem.fill);

let folder: string;
let path: string;
let driver = NODE_SQLITE;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-checkpoint-"));
  path = join(folder, "curfew.db");
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Writes this many megabytes of jobs, some at a time, as work comes in. */
async function write(store: Store, megabytes: number): Promise<void> {
  const payload = `"${"x".repeat(10_000)}"`;
  for (let written = 0; written < megabytes; written += 0.2) {
    const jobs = Array.from({ length: 20 }, () => sketchJob({ payload }, NOW, nextId));
    await store.jobs.enqueue(jobs, { now: NOW });
  }
}

function logSize(): number[] {
  const file = driver.open(path);
  const [size = []] = rowsOf(file, LOG_SIZE);
  file.close();
  return size.slice(1) as number[];
}

/** The pages of the log that are not in the file yet. The thread begins at 4,000. */
function pagesLeft(): number {
  const [all = 0, done = 0] = logSize();
  return all - done;
}

describe.each(SQLITE_DRIVERS)("checkpoints, on $name", (given) => {
  beforeEach(() => {
    driver = given;
  });

  it("are done by another thread while work goes on, and keep the log from growing", async () => {
    const store = await openSqliteStore({ path, system, binding: driver.binding });
    for (let written = 0; written < 100; written += 5) {
      await write(store, 5);
      // Else a busy machine, or a disk that takes no time, lets the writes run ahead of the thread.
      await expect.poll(pagesLeft).toBeLessThan(5_000);
    }
    // Far below what was written: without checkpoints it would be 100 MB, and this thread begins at 80.
    expect(statSync(`${path}-wal`).size).toBeLessThan(70_000_000);
    expect(statSync(path).size).toBeGreaterThan(20_000_000);
    await store.close();
    expect(statSync(path).size).toBeGreaterThan(100_000_000);
  });

  it("need no thread before there is something to do", async () => {
    const store = await openSqliteStore({ path, system, binding: driver.binding });
    await write(store, 2);
    const [all, done] = logSize();
    expect(all).toBeGreaterThan(300);
    expect(done).toBe(0);
    await store.close();
  });

  it("are left to SQLite where there can be no thread", async () => {
    const failed = Promise.withResolvers<void>();
    const thread = pathToFileURL(join(folder, "missing.ts"));
    const binding = driver.binding.name;
    const options = { path, binding, waiting: () => 5_000, onFailure: () => failed.resolve(), thread };
    const checkpointer = new Checkpointer(options);
    for (let commit = 0; commit < 8; commit++) checkpointer.committed();
    await failed.promise;
    await checkpointer.close();
  });
});
