/** A process with a worker whose sandboxes loop, for `pool.test.ts`: it is killed from outside. */

import { openEngine, sandboxed } from "../../../src/index.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import { logOf } from "../../../src/testing/read-store.ts";
import { act } from "./act-job.ts";

const engine = await openEngine({ store: "memory:", logger: silentLogger });
engine.work({
  queues: { default: { concurrency: 2 } },
  processors: [
    sandboxed(act, new URL("./act.ts", import.meta.url), { spare: 2, size: 3, env: ["CURFEW_TEST_MARK"] }),
  ],
});
const options = { timeouts: { attempt: "5m" as const } };
await engine.enqueue(act, { name: "loop", argument: null }, options);
const job = await engine.enqueue(act, { name: "grandchild", argument: null }, options);
let isSaid = false;
setInterval(async () => {
  const lines = await logOf(engine.store, job.id);
  if (lines.length === 0 || isSaid) return;
  isSaid = true;
  console.log("looping");
}, 20);
