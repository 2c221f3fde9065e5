import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { batchProcessor, defineJob, unchecked } from "../../src/index.ts";
import { openTestEngine } from "../../src/testing/index.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** `npm run test:long -- batches` times 100,000 jobs out. */
const ROUNDS = Number(process.env.CURFEW_BATCH_ROUNDS ?? 10);
const PER_ROUND = 2_000;
const SIZE = 500;
const GROWTH = 3_000_000;

it("jobs of batches that time out leave no timer, no listener and no memory", async () => {
  await using stage = await openTestEngine({ events: "off" });
  const definition = defineJob({
    type: "row.add",
    payload: unchecked<number>(),
    timeouts: { attempt: "1s", grace: "0s" },
    retry: { attempts: 1 },
    retention: { discarded: "0s" },
  });
  const hung: (() => void)[] = [];
  let aborted = 0;
  const processors = [
    batchProcessor(definition, { size: SIZE, within: "50ms" }, async ({ jobs, signal }) => {
      signal.addEventListener("abort", () => void aborted++);
      for (const job of jobs) job.signal.addEventListener("abort", () => void aborted++);
      await new Promise<void>((resolve) => void hung.push(resolve));
    }),
  ];
  const worker = stage.engine.work({ processors, queues: { default: { concurrency: PER_ROUND } } });
  const heaps: number[] = [];
  const timers: number[] = [];
  const payloads = Array.from({ length: PER_ROUND }, (_, index) => index);
  for (let round = 0; round < ROUNDS; round++) {
    await stage.engine.enqueueMany(definition, payloads);
    await stage.advance("2s");
    for (const end of hung.splice(0)) end();
    await stage.advance("1s");
    collect();
    heaps.push(process.memoryUsage().heapUsed);
    timers.push(stage.system.pendingTimers);
  }
  expect(aborted).toBe(ROUNDS * (PER_ROUND + PER_ROUND / SIZE));
  expect(worker.status()).toMatchObject({ running: 0, held: 0, stuck: 0 });
  expect(timers.at(-1)).toBeLessThanOrEqual(timers[2] as number);
  expect((heaps.at(-1) as number) - (heaps[4] as number)).toBeLessThan(GROWTH);
});
