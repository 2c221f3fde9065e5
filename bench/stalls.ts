/**
 * `npm run bench:stalls`: how long one turn of the event loop takes while an engine works on the SQLite store. CPU is
 * what this thread itself computed; what the wall clock shows beyond that is the disk, or other programs on the machine.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob, type Engine, openEngine, processor, unchecked } from "../src/index.ts";
import { inBatches, type Payload, payload, payloads } from "./contender.ts";
import { percentile } from "./measure.ts";

const SIZE = Number(process.argv[2] ?? 50_000);

interface Turns {
  readonly wall: number[];
  readonly cpu: number[];
}

/** Notes how long each turn of the event loop takes until it is told to stop. */
function watch(): () => Turns {
  const turns: Turns = { wall: [], cpu: [] };
  let isOver = false;
  let from = performance.now();
  let used = threadCpu();
  const look = () => {
    const [now, cpu] = [performance.now(), threadCpu()];
    turns.wall.push(now - from);
    turns.cpu.push(cpu - used);
    [from, used] = [now, cpu];
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isOver = true;
    return turns;
  };
}

function threadCpu(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

const kept = defineJob({ type: "kept", payload: unchecked<Payload>() });
const dropped = defineJob({ type: "dropped", payload: unchecked<Payload>(), retention: "0s" });
const large = defineJob({ type: "large", payload: unchecked<Payload>() });

type Phase = (engine: Engine) => Promise<void>;

async function drain(engine: Engine, concurrency: number, count: number): Promise<void> {
  const done = Promise.withResolvers<void>();
  let ran = 0;
  const handler = () => {
    ran += 1;
    if (ran === count) done.resolve();
  };
  const worker = engine.work({
    queues: { default: { concurrency } },
    processors: [kept, dropped, large].map((definition) => processor(definition, handler)),
  });
  await done.promise;
  await worker.close();
}

const PHASES: Readonly<Record<string, Phase>> = {
  "bulk enqueue": (engine) =>
    inBatches(SIZE, 1_000, 2, (from, to) => engine.enqueueMany(kept, payloads(from, to))),
  "drain, kept": (engine) => drain(engine, 100, SIZE),
  "single enqueue, 20 producers": async (engine) => {
    let next = 0;
    const produce = async () => {
      for (; next < SIZE; next++) await engine.enqueue(dropped, payload(next));
    };
    await Promise.all(Array.from({ length: 20 }, produce));
  },
  "drain, dropped": async (engine) => {
    const { available } = await engine.queues.depth();
    await drain(engine, 100, available);
  },
  "delayed jobs in 5 s": async (engine) => {
    const [begin, count] = [Date.now() + 1_000, Math.floor(SIZE / 5)];
    const drained = drain(engine, 100, count);
    await inBatches(count, 1, 20, async (n) => {
      await engine.enqueue(kept, payload(n), { at: new Date(begin + (n * 5_000) / count) });
    });
    await drained;
  },
  "200 payloads of 100 kB, enqueued and drained": async (engine) => {
    const text = "x".repeat(100_000);
    await inBatches(200, 10, 1, (from, to) =>
      engine.enqueueMany(
        large,
        payloads(from, to).map(({ n }) => ({ n, text })),
      ),
    );
    await drain(engine, 10, 200);
  },
};

/** Most turns do next to nothing, and would hide the others. */
const WORTH_COUNTING = 0.5;

function shown(all: readonly number[]): string {
  const times = all.filter((time) => time >= WORTH_COUNTING);
  const worst = times.reduce((most, time) => Math.max(most, time), 0);
  const over = times.filter((time) => time > 20).length;
  if (times.length === 0) return "– | – | 0";
  return `${percentile(times, 0.99).toFixed(1)} | ${worst.toFixed(1)} | ${over}`;
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-stalls-"));
  const engine = await openEngine({ store: `sqlite:${join(folder, "jobs.db")}` });
  // Code that is not compiled yet is slow, whatever it does; two rounds are enough for all of it.
  for (let round = 0; round < 2; round++) for (const phase of Object.values(PHASES)) await phase(engine);
  console.log("| turns of the event loop, ms | | p99 | worst | over 20 |\n|---|---|---:|---:|---:|");
  for (const [name, phase] of Object.entries(PHASES)) {
    const stop = watch();
    await phase(engine);
    const { wall, cpu } = stop();
    console.log(`| ${name} | wall | ${shown(wall)} |\n| | CPU | ${shown(cpu)} |`);
  }
  await engine.close();
  rmSync(folder, { recursive: true });
}

await main();
