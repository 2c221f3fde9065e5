/** A process with one worker, for `blocked-loop.test.ts`: `node blocked-loop-worker.ts <store> <name>`. */

import { type EngineEvent, openEngine, processor, silentLogger } from "../../src/index.ts";
import { blocker, innocent } from "./blocked-loop-jobs.ts";

const [store = "", name = ""] = process.argv.slice(2);
const engine = await openEngine({ store, logger: silentLogger });
const events: EngineEvent[] = [];
void (async () => {
  for await (const event of engine.events()) events.push(event);
})();

const wait = (delay: number) => new Promise((resolve) => setTimeout(resolve, delay));

engine.work({
  queues: { default: { concurrency: 8 } },
  processors: [
    processor(blocker, async ({ payload, id }) => {
      // Long enough for all the starts to be marked: only then is a takeover a stall and not an expired claim.
      await wait(2_500);
      process.send?.({ blocking: id });
      // It sleeps, and its event loop with it: computing would take the time of the healthy worker.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, payload);
      return name;
    }),
    processor(innocent, async ({ payload, beat, signal }) => {
      for (let passed = 0; passed < payload; passed += 50) {
        await wait(50);
        signal.throwIfAborted();
        beat();
      }
      return name;
    }),
  ],
});
process.send?.({ ready: name });

process.on("message", async (message) => {
  if (message === "report") process.send?.({ events, counters: engine.counters() });
  if (message !== "close") return;
  await engine.close({ drain: "5s" });
  process.disconnect();
});
