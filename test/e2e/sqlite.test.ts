import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { BATCH_LIMIT, type Hint, type Store } from "../../src/ports/store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { productionSystem } from "../support/system.ts";

const CHILD = join(import.meta.dirname, "sqlite-child.ts");
const nextId = createIdSource(() => Math.floor(realSystem.wall()), realSystem.fill);

let folder: string;
let path: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-sqlite-"));
  path = join(folder, "curfew.db");
});

afterEach(async () => {
  for (const child of children.splice(0)) await ended(child, "SIGKILL");
  rmSync(folder, { recursive: true });
});

function start(deed: string, number = 0): ChildProcess {
  const child = fork(CHILD, [deed, path, String(number)], { execArgv: [] });
  children.push(child);
  return child;
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

async function message<Message>(child: ChildProcess): Promise<Message> {
  const [told] = await once(child, "message");
  return told as Message;
}

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openSqliteStore({ path, system: productionSystem });
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

async function enqueue(store: Store, count: number): Promise<string[]> {
  const now = await store.clock();
  const jobs = Array.from({ length: count }, () => sketchJob({}, now, nextId));
  await store.jobs.enqueue(jobs, { now });
  return jobs.map(({ id }) => id);
}

describe("several processes on one SQLite file", () => {
  it("claim each job once between them", async () => {
    const claimed: string[] = [];
    let ids: string[] = [];
    await withStore(async (store) => {
      for (let batch = 0; batch < 3; batch++) ids = ids.concat(await enqueue(store, BATCH_LIMIT));
      const claimers = ["claim", "claim", "claim"].map((deed) => start(deed));
      for (const part of await Promise.all(claimers.map((child) => message<string[]>(child)))) {
        claimed.push(...part);
      }
    });
    expect(claimed.sort()).toEqual(ids.sort());
  });

  it("hear of each other's jobs", async () => {
    await withStore(async (store) => {
      const heard: Hint[] = [];
      let hear!: () => void;
      const once = new Promise<void>((resolve) => {
        hear = resolve;
      });
      await store.listen((hint) => {
        heard.push(hint);
        hear();
      });
      start("enqueue");
      await once;
      expect(heard[0]).toEqual({ ready: "default" });
    });
  });

  it("create it together, and lose nothing that was acknowledged when they are killed", async () => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 3; round++) {
      const pair = [start("enqueue"), start("enqueue")];
      await Promise.all(
        pair.map(async (child) => {
          for (let batch = 0; batch < 20; batch++) acknowledged.push(...(await message<string[]>(child)));
          child.on("message", (ids) => acknowledged.push(...(ids as string[])));
        }),
      );
      for (const child of pair) await ended(child, "SIGKILL");
    }
    await withStore(async (store) => {
      for (let from = 0; from < acknowledged.length; from += BATCH_LIMIT) {
        const rows = await store.jobs.load(acknowledged.slice(from, from + BATCH_LIMIT));
        expect(rows.filter((row) => row === null)).toEqual([]);
      }
    });
  });

  it("wait for one that keeps the file for four seconds, and their event loops go on", async () => {
    await withStore(async (store) => {
      const child = start("hold", 4_000);
      await message(child);
      let isDone = false;
      const enqueued = enqueue(store, 10).finally(() => {
        isDone = true;
      });
      // None would be counted before the file is free if SQLite itself waited for it.
      let turns = 0;
      const timer = setInterval(() => {
        turns += 1;
      }, 1);
      onTestFinished(() => clearInterval(timer));
      await expect.poll(() => turns).toBeGreaterThan(100);
      expect(isDone).toBe(false);
      child.send("stop");
      expect(await enqueued).toHaveLength(10);
    });
  });
});
