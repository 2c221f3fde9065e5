import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { createIdSource } from "../../src/core/ids.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { rest } from "../../src/ports/system.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { productionSystem } from "../support/system.ts";

/** One process of the tests in sqlite.test.ts: what it does, on which file, and a number that the deed needs. */
const [deed = "", path = "", number = "0"] = process.argv.slice(2);

const DEEDS: Record<string, () => Promise<void>> = {
  /** Enqueues batches until it is killed, and prints each that was acknowledged. */
  async enqueue() {
    const store = await openSqliteStore({ path, system: productionSystem });
    const nextId = createIdSource(() => Math.floor(realSystem.wall()), realSystem.fill);
    for (;;) {
      const now = await store.clock();
      const jobs = Array.from({ length: 10 }, () => sketchJob({}, now, nextId));
      await store.jobs.enqueue(jobs, { now });
      process.send?.(jobs.map(({ id }) => id));
    }
  },
  /** Claims until nothing is left, and tells what it got. */
  async claim() {
    const store = await openSqliteStore({ path, system: productionSystem });
    const ids: string[] = [];
    for (let isEmpty = false; !isEmpty; ) {
      const salt = Math.floor(realSystem.random() * 2 ** 21);
      const request = {
        queue: "default",
        limit: 7,
        lease: 60_000,
        salt,
        worker: String(process.pid),
        from: 0,
      };
      const rows = await store.jobs.claim({ ...request, now: await store.clock() });
      ids.push(...rows.map(({ id }) => id));
      isEmpty = rows.length === 0 && (await depthOf(store)).available === 0;
    }
    await store.close();
    process.send?.(ids, () => process.disconnect());
  },
  /** Keeps everybody else from writing for this many milliseconds, and until it is told to stop. */
  async hold() {
    const handle = new DatabaseSync(path);
    handle.exec("begin immediate");
    const stop = once(process, "message");
    process.send?.("held");
    await rest(realSystem, Number(number));
    await stop;
    handle.exec("commit");
    handle.close();
    process.disconnect();
  },
};

await DEEDS[deed]?.();
