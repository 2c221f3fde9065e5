/**
 * What a sandbox costs and how surely it ends: `node bench/sandbox.ts [kills]`. Kill latency of endless loops, four at a
 * time; the overhead of a warm sandbox for a job that does nothing; how long the worker's own event loop was held up.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { openEngine, processor, sandboxed } from "../src/index.ts";
import { act } from "../test/e2e/sandbox/jobs.ts";

const KILLS = Number(process.argv[2] ?? 200);
const WARM = 2_000;

function quantiles(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`;
}

const wait = (delay: number) => new Promise<void>((resolve) => setTimeout(resolve, delay));

async function kills(): Promise<void> {
  await using engine = await openEngine({ store: "memory:" });
  const module = new URL("../test/e2e/sandbox/act.ts", import.meta.url);
  engine.work({
    queues: { default: { concurrency: 4 } },
    processors: [sandboxed(act, module, { spare: 4, size: 8 })],
  });
  await wait(3_000);
  const late: number[] = [];
  let stacks = 0;
  const onKilled = new Map<string, (at: number) => void>();
  engine.on("job.killed", ({ id, at, where }) => {
    if (where?.includes("at spin")) stacks += 1;
    onKilled.get(id)?.(at);
  });
  const lag = monitorEventLoopDelay({ resolution: 5 });
  lag.enable();
  let left = KILLS;
  const lane = async () => {
    while (left-- > 0) {
      const { id } = await engine.enqueue(act, { name: "loop", argument: null });
      const at = await new Promise<number>((resolve) => onKilled.set(id, resolve));
      const row = await engine.load(id);
      late.push(at - (row?.hardAt ?? 0));
    }
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  lag.disable();
  console.log(
    `${late.length} kills of endless loops, four at a time: gone after the hard deadline ${quantiles(late)}`,
  );
  console.log(`  stacks captured: ${stacks}`);
  const [p99, most] = [lag.percentile(99), lag.max].map((value) => (value / 1e6 - 5).toFixed(1));
  console.log(`  lag of the worker's event loop: p99 ${p99} ms, most ${most} ms`);
}

async function overhead(name: string, options: Parameters<typeof sandboxed>[2] | undefined): Promise<void> {
  await using engine = await openEngine({ store: "memory:" });
  const module = new URL("../test/e2e/sandbox/act.ts", import.meta.url);
  const took: number[] = [];
  const began = new Map<string, number>();
  engine.work({
    queues: { default: { concurrency: 1 } },
    processors: [options ? sandboxed(act, module, options) : processor(act, () => undefined)],
    middleware: [
      async (context, next) => {
        began.set(context.id, performance.now());
        try {
          return await next();
        } finally {
          took.push(performance.now() - (began.get(context.id) as number));
        }
      },
    ],
  });
  for (let job = 0; job < WARM; job++) {
    const { id } = await engine.enqueue(
      act,
      { name: "noop", argument: null },
      { timeouts: { attempt: "30s" } },
    );
    await engine.job(id).result({ within: "30s" });
  }
  console.log(`${WARM} no-op jobs, ${name}: the handler took ${quantiles(took.slice(100))}`);
}

await kills();
await overhead("in the worker itself", undefined);
await overhead("in a warm process", { kind: "process" });
await overhead("in a warm thread", { kind: "thread" });
