/** One measurement of `compare.ts`: plain jobs of the source tree that is named, enqueued first and then drained. */

import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Jobs per second, and microseconds of this process's CPU per job. */
export interface Measured {
  readonly enqueue: number;
  readonly drain: number;
  readonly cpu: { readonly enqueue: number; readonly drain: number };
}

const CHUNK = 1_000;
const CONCURRENCY = 100;

type Curfew = typeof import("../src/index.ts");

async function timed(jobs: number, work: () => Promise<void>): Promise<{ rate: number; cpu: number }> {
  const usage = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const took = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(usage);
  return { rate: (jobs / took) * 1_000, cpu: (user + system) / jobs };
}

async function measure(root: string, store: string, jobs: number): Promise<Measured> {
  const curfew = (await import(pathToFileURL(join(root, "src/index.ts")).href)) as Curfew;
  const { defineJob, openEngine, processor, silentLogger } = curfew;
  const noop = defineJob({
    type: "noop",
    timeouts: { wait: "2d", attempt: "5m", total: "3d", grace: "30s" },
  });
  const engine = await openEngine({ store, logger: silentLogger });
  const enqueue = await timed(jobs, async () => {
    for (let from = 0; from < jobs; from += CHUNK) {
      const payloads = Array.from({ length: Math.min(CHUNK, jobs - from) }, (_, nth) => ({ n: from + nth }));
      await engine.enqueueMany(noop, payloads as never);
    }
  });
  const drain = await timed(jobs, async () => {
    engine.work({
      queues: { default: { concurrency: CONCURRENCY } },
      processors: [processor(noop, () => {})],
    });
    while (engine.counters().completed < jobs) await new Promise((resolve) => setImmediate(resolve));
  });
  await engine.close();
  return {
    enqueue: enqueue.rate,
    drain: drain.rate,
    cpu: { enqueue: enqueue.cpu, drain: drain.cpu },
  };
}

if (process.argv[1] === import.meta.filename) {
  const [root = "", store = "", jobs = ""] = process.argv.slice(2);
  console.log(JSON.stringify(await measure(root, store, Number(jobs))));
}
