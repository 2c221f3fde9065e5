/**
 * `npm run bench:fair`: what a fair queue does and costs, on SQLite and on PostgreSQL.
 *
 * 1. Ten jobs of one customer beside 1,000,000 of another, against the same ten alone with half of the slots.
 * 2. The drain of a hot queue, plain and fair, in turns: jobs per second and CPU of this process per job.
 *
 * `npm run bench:fair -- 100000` takes fewer jobs beside the ten.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob, type Engine, openEngine, processor, silentLogger } from "../src/index.ts";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";

const JOBS = Number(process.argv[2] ?? 1_000_000);
const BATCH = 10_000;
const SLOTS = 10;
const HANDLER_TIME = 20;
const REPEATS = 9;
const DRAINED = 30_000;
const ROUNDS = Number(process.env.CURFEW_BENCH_ROUNDS ?? 5);

const work = defineJob({ type: "work.do" });

async function fill(engine: Engine, count: number, keyOf: (nth: number) => string | undefined, keys = 1) {
  for (let key = 0; key < keys; key++) {
    for (let left = Math.ceil(count / keys); left > 0; left -= BATCH) {
      const fairKey = keyOf(key);
      const payloads = Array(Math.min(BATCH, left)).fill("many");
      await engine.enqueueMany(work, payloads, fairKey === undefined ? {} : { fairKey });
    }
  }
}

const rest = (time: number) => new Promise((resolve) => setTimeout(resolve, time));

interface Tally {
  started: number;
  ended: number;
  readonly onEnd: (() => void)[];
}

/** Enqueues ten jobs of one customer. Resolves with when the last one started and ended, in milliseconds from then. */
async function ten(engine: Engine, tally: Tally) {
  const from = performance.now();
  [tally.started, tally.ended] = [0, 0];
  const [started, ended] = [hasTen(tally, "started"), hasTen(tally, "ended")];
  await engine.enqueueMany(work, Array(10).fill("few"), { fairKey: "small" });
  return { started: (await started) - from, ended: (await ended) - from };
}

function hasTen(tally: Tally, what: "started" | "ended"): Promise<number> {
  return new Promise((resolve) => {
    tally.onEnd.push(() => {
      if (tally[what] === 10) resolve(performance.now());
    });
  });
}

async function waits(store: string, slots: number) {
  const engine = await openEngine({ store, logger: silentLogger });
  await engine.queues.configure("default", { fair: {} });
  const tally: Tally = { started: 0, ended: 0, onEnd: [] };
  const count = (what: "started" | "ended") => {
    tally[what] += 1;
    for (const check of tally.onEnd) check();
  };
  const does = processor(work, async ({ payload }) => {
    if (payload === "few") count("started");
    await rest(HANDLER_TIME);
    if (payload === "few") count("ended");
  });
  const worker = engine.work({ processors: [does], queues: { default: { concurrency: slots } } });
  await rest(1_500);
  const samples: { started: number; ended: number }[] = [];
  for (let nth = 0; nth < REPEATS; nth++) {
    samples.push(await ten(engine, tally));
    tally.onEnd.length = 0;
    await rest(50 + 200 * Math.random());
  }
  await worker.close();
  await engine.close();
  const median = (of: "started" | "ended") =>
    samples.map((sample) => sample[of]).sort((a, b) => a - b)[Math.floor(REPEATS / 2)] as number;
  return { started: median("started"), ended: median("ended") };
}

async function beside(name: string, open: () => Promise<string>): Promise<void> {
  const alone = await waits(await open(), SLOTS / 2);
  const crowded = await open();
  const engine = await openEngine({ store: crowded, logger: silentLogger });
  await fill(engine, JOBS, () => "large");
  await engine.close();
  const shared = await waits(crowded, SLOTS);
  const line = (what: "started" | "ended") =>
    `last ${what} ${shared[what].toFixed(0)} ms, alone at half the slots ${alone[what].toFixed(0)} ms: ${(shared[what] / alone[what]).toFixed(2)} x`;
  console.log(`${name}: ten jobs beside ${JOBS.toLocaleString("en")}: ${line("ended")}; ${line("started")}`);
}

async function drain(store: string, keys: number): Promise<{ rate: number; cpu: number }> {
  const engine = await openEngine({ store, logger: silentLogger });
  if (keys > 0) await engine.queues.configure("default", { fair: {} });
  await fill(engine, DRAINED, (nth) => (keys === 0 ? undefined : `customer-${nth}`), Math.max(1, keys));
  let left = Math.max(1, keys) * Math.ceil(DRAINED / Math.max(1, keys));
  const total = left;
  let drained = () => {};
  const all = new Promise<void>((resolve) => {
    drained = resolve;
  });
  const does = processor(work, () => {
    left -= 1;
    if (left === 0) drained();
  });
  const from = performance.now();
  const cpu = process.cpuUsage();
  const worker = engine.work({ processors: [does], queues: { default: { concurrency: 100 } } });
  await all;
  const used = process.cpuUsage(cpu);
  const elapsed = performance.now() - from;
  await worker.close();
  await engine.close();
  return { rate: total / (elapsed / 1_000), cpu: (used.user + used.system) / total };
}

async function drains(name: string, open: () => Promise<string>): Promise<void> {
  const kinds = [0, 1, 40, 2_000];
  const samples = new Map(kinds.map((keys) => [keys, [] as { rate: number; cpu: number }[]]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const keys of kinds) {
      const sample = await drain(await open(), keys);
      if (round > 0) samples.get(keys)?.push(sample);
    }
  }
  const median = (keys: number, of: "rate" | "cpu") =>
    (samples.get(keys) ?? []).map((sample) => sample[of]).sort((a, b) => a - b)[
      Math.floor(ROUNDS / 2)
    ] as number;
  for (const keys of kinds) {
    const [rate, cpu] = [median(keys, "rate"), median(keys, "cpu")];
    const [plainRate, plainCpu] = [median(0, "rate"), median(0, "cpu")];
    console.log(
      `${name}: drain of ${DRAINED.toLocaleString("en")}, ${keys === 0 ? "plain" : `${keys} keys`}: ` +
        `${rate.toFixed(0)} jobs/s (${(rate / plainRate).toFixed(2)} x), ${cpu.toFixed(1)} µs CPU per job (${(cpu / plainCpu).toFixed(2)} x)`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), "curfew-fair-"));
const postgres = await startOwnPostgres();
let opened = 0;
const stores: Record<string, () => Promise<string>> = {
  sqlite: async () => `sqlite:${join(folder, `${opened++}.db`)}`,
  postgres: async () => (await createDatabase(postgres.url)).url,
};
try {
  const only = process.env.CURFEW_BENCH_ONLY ?? "";
  for (const [name, open] of Object.entries(stores)) {
    if (!only.includes("waits")) await drains(name, open);
    if (!only.includes("drains")) await beside(name, open);
  }
} finally {
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
