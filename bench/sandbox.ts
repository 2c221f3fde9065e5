/**
 * What a sandbox costs and how surely it ends: `node bench/sandbox.ts [kills] [ways…]`. For each way to hang, four at a time: how
 * long after the hard deadline it was gone, how many errors say where it hung, and how long the worker's own event loop
 * was held up. Then the overhead of a warm sandbox for a job that does nothing, and how long a cold one takes.
 */

import { loadavg } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import {
  type EngineEvents,
  openEngine,
  processor,
  type SandboxOptions,
  sandboxed,
  silentLogger,
} from "../src/index.ts";
import { rowOf } from "../src/testing/read-store.ts";
import { act } from "../test/e2e/sandbox/act-job.ts";

const KILLS = Number(process.argv[2] ?? 200);
const WAYS = process.argv.slice(3);
const WARM = 2_000;
const COLD = 20;
const LAG_RESOLUTION = 5;
const module = new URL("../test/e2e/sandbox/act.ts", import.meta.url);

function quantiles(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`;
}

async function measureLag(work: () => Promise<unknown>): Promise<string> {
  const lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION });
  lag.enable();
  await work();
  lag.disable();
  const [p99, most] = [lag.percentile(99), lag.max].map((value) => (value / 1e6 - LAG_RESOLUTION).toFixed(1));
  return `p99 ${p99} ms, most ${most} ms`;
}

async function kills(name: string, kind: NonNullable<SandboxOptions["kind"]>): Promise<void> {
  await using engine = await openEngine({ store: "memory:", logger: silentLogger });
  engine.work({
    queues: { default: { concurrency: 4 } },
    processors: [sandboxed(act, module, { kind, spare: 4, size: 8 })],
  });
  // Everything is loaded and has been used once, as in a worker that has been up for a while.
  await Promise.all(
    [1, 2, 3, 4].map(async () => (await engine.enqueue(act, { name: "noop" })).result({ within: "30s" })),
  );
  const late: number[] = [];
  let stacks = 0;
  let forced = 0;
  const onKilled = new Map<string, (event: EngineEvents["job.killed"]) => void>();
  engine.on("job.killed", (event) => onKilled.get(event.id)?.(event));
  let left = KILLS;
  const lane = async () => {
    while (left-- > 0) {
      const { id } = await engine.enqueue(act, { name, argument: null });
      const { at } = await new Promise<EngineEvents["job.killed"]>((resolve) => onKilled.set(id, resolve));
      // It may be gone before its verdict is written.
      await engine
        .job(id)
        .result({ within: "30s" })
        .catch(() => {});
      const row = await rowOf(engine.store, id);
      const [error] = row?.errors ?? [];
      if (error?.type === "timeout" && error.forced) forced += 1;
      if (error?.stack?.startsWith("It hung here")) stacks += 1;
      late.push(at - (row?.hardAt ?? 0));
    }
  };
  const lag = await measureLag(() => Promise.all([lane(), lane(), lane(), lane()]));
  console.log(`${name} in a ${kind}: ${late.length} kills, ${forced} by timeout and force`);
  console.log(`  gone after the hard deadline: ${quantiles(late)}`);
  console.log(`  errors that say where: ${stacks}; lag of the worker's event loop: ${lag}`);
}

async function overhead(name: string, options: SandboxOptions | undefined): Promise<void> {
  await using engine = await openEngine({ store: "memory:", logger: silentLogger });
  const took: number[] = [];
  const whole: number[] = [];
  engine.work({
    queues: { default: { concurrency: 1 } },
    processors: [options ? sandboxed(act, module, options) : processor(act, () => undefined)],
    middleware: [
      async (_context, next) => {
        const began = performance.now();
        try {
          return await next();
        } finally {
          took.push(performance.now() - began);
        }
      },
    ],
  });
  for (let job = 0; job < WARM; job++) {
    const began = performance.now();
    const { id } = await engine.enqueue(act, { name: "noop", argument: null });
    await engine.job(id).result({ within: "30s" });
    whole.push(performance.now() - began);
  }
  console.log(`${WARM} no-op jobs, one by one, ${name}`);
  console.log(`  the handler: ${quantiles(took.slice(100))}`);
  console.log(`  enqueue to result: ${quantiles(whole.slice(100))}`);
}

async function coldStart(kind: NonNullable<SandboxOptions["kind"]>): Promise<void> {
  const took: number[] = [];
  for (let start = 0; start < COLD; start++) {
    await using engine = await openEngine({ store: "memory:", logger: silentLogger });
    const began = performance.now();
    engine.work({ processors: [sandboxed(act, module, { kind })] });
    const job = await engine.enqueue(act, { name: "noop", argument: null });
    await job.result({ within: "30s" });
    took.push(performance.now() - began);
  }
  console.log(
    `${COLD} first jobs of a worker, cold ${kind}: ${quantiles(took)}, none of it charged to the attempt`,
  );
}

const load = () => loadavg().map((value) => value.toFixed(1));
console.log(`load before: ${load().join(" ")}`);
const isAsked = (way: string) => WAYS.length === 0 || WAYS.includes(way);
for (const name of ["loop", "atomics", "exec", "ignoreSigterm", "cleanupHangs", "hang"].filter(isAsked))
  await kills(name, "process");
for (const name of ["loop", "atomics", "cleanupHangs", "hang"].filter(isAsked)) await kills(name, "thread");
await overhead("in the worker itself", undefined);
await overhead("in a warm process", { kind: "process" });
await overhead("in a warm thread", { kind: "thread" });
await coldStart("process");
await coldStart("thread");
console.log(`load after: ${load().join(" ")}`);
