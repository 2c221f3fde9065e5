/** One measurement of `compare.ts`: plain jobs of the source tree that is named, enqueued and drained a few times. */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { payloads } from "./contender.ts";
import { type Cost, measure, median, ServerMeter } from "./measure.ts";

/** Medians of the samples. */
export interface Measured {
  readonly enqueue: Cost;
  readonly drain: Cost;
}

export interface ChildOptions {
  readonly root: string;
  readonly store: string;
  readonly retention: "drop" | "keep";
  readonly jobs: number;
  readonly concurrency: number;
  readonly samples: number;
}

const CHUNK = 1_000;

type Curfew = typeof import("../src/index.ts");

async function samplesOf(options: ChildOptions): Promise<Measured[]> {
  const { root, store, retention, jobs, concurrency, samples } = options;
  const curfew = (await import(pathToFileURL(join(root, "src/index.ts")).href)) as Curfew;
  const { defineJob, openEngine, processor, silentLogger } = curfew;
  const noop = defineJob({
    type: "noop",
    timeouts: { wait: "2d", attempt: "5m", total: "3d", grace: "30s" },
    ...(retention === "drop" && { retention: "0s" as const }),
  });
  const meter = store.startsWith("postgres") ? await ServerMeter.of(store) : { cpu: () => 0 };
  const engine = await openEngine({ store, logger: silentLogger });
  const measured: Measured[] = [];
  for (let sample = 0; sample <= samples; sample++) {
    const enqueue = await measure(jobs, meter, async (begin) => {
      collect();
      begin();
      for (let from = 0; from < jobs; from += CHUNK)
        await engine.enqueueMany(noop, payloads(from, Math.min(jobs, from + CHUNK)) as never);
    });
    const until = engine.counters().completed + jobs;
    let close = async () => {};
    let left = jobs;
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const drain = await measure(jobs, meter, async (begin) => {
      collect();
      begin();
      const worker = engine.work({
        queues: { default: { concurrency } },
        processors: [
          processor(noop, () => {
            left -= 1;
            if (left === 0) reach();
          }),
        ],
      });
      close = () => worker.close();
      await reached;
      while (engine.counters().completed < until) await new Promise((resolve) => setImmediate(resolve));
    });
    await close();
    // The first sample warms up.
    if (sample > 0) measured.push({ enqueue, drain });
  }
  await engine.close();
  return measured;
}

/**
 * Both phases begin with an empty young generation. Otherwise the garbage of a drain decides whether a collection falls
 * into the enqueue after it, and a tree that makes less garbage looks slower there.
 */
function collect(): void {
  if (!globalThis.gc) throw new Error("run with --expose-gc");
  globalThis.gc();
}

function mediansOf(measured: readonly Measured[], figure: keyof Measured): Cost {
  const of = (key: keyof Cost) => median(measured.map((one) => one[figure][key]));
  return { rate: of("rate"), node: of("node"), server: of("server") };
}

if (process.argv[1] === import.meta.filename) {
  const measured = await samplesOf(JSON.parse(process.argv[2] as string) as ChildOptions);
  const medians: Measured = {
    enqueue: mediansOf(measured, "enqueue"),
    drain: mediansOf(measured, "drain"),
  };
  console.log(JSON.stringify(medians));
}
