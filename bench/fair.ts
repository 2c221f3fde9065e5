/**
 * `npm run bench:fair`: what a fair queue does and costs, on SQLite and on PostgreSQL.
 *
 * 1. Ten jobs of one customer beside 1,000,000 of another, against the same ten alone with half of the slots.
 * 2. The drain of a hot queue, plain and fair, in turns: jobs per second and CPU per job, of this process and of the
 *    server. Customers enqueue in blocks, each all of its jobs at once, or mixed, one job after the other.
 *
 * `npm run bench:fair -- 100000` takes fewer jobs beside the ten. `CURFEW_BENCH_ONLY=drains` or `waits` measures one of
 * the two, `CURFEW_BENCH_STORES=postgres` on one store, `CURFEW_BENCH_ROUNDS=3` in fewer rounds.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob, type Engine, openEngine, processor, silentLogger } from "../src/index.ts";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";
import { median, ServerMeter } from "./measure.ts";

const JOBS = Number(process.argv[2] ?? 1_000_000);
const BATCH = 10_000;
const SLOTS = 10;
const HANDLER_TIME = 20;
const REPEATS = 9;
const DRAINED = 30_000;
const ROUNDS = Number(process.env.CURFEW_BENCH_ROUNDS ?? 5);

const work = defineJob({ type: "work.do" });

const share = (fairKey: string | undefined) => (fairKey === undefined ? {} : { fairKey });

async function fill(engine: Engine, count: number, fairKey: string | undefined) {
  for (let left = count; left > 0; left -= BATCH)
    await engine.enqueueMany(work, Array(Math.min(BATCH, left)).fill("many"), share(fairKey));
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
  const middle = (of: "started" | "ended") => median(samples.map((sample) => sample[of]));
  return { started: middle("started"), ended: middle("ended") };
}

async function beside(name: string, open: () => Promise<string>): Promise<void> {
  const alone = await waits(await open(), SLOTS / 2);
  const crowded = await open();
  const engine = await openEngine({ store: crowded, logger: silentLogger });
  await fill(engine, JOBS, "large");
  await engine.close();
  const shared = await waits(crowded, SLOTS);
  const line = (what: "started" | "ended") =>
    `last ${what} ${shared[what].toFixed(0)} ms, alone at half the slots ${alone[what].toFixed(0)} ms: ${(shared[what] / alone[what]).toFixed(2)} x`;
  console.log(`${name}: ten jobs beside ${JOBS.toLocaleString("en")}: ${line("ended")}; ${line("started")}`);
}

interface Kind {
  readonly keys: number;
  readonly isMixed?: boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  plain: { keys: 0 },
  "1 key": { keys: 1 },
  "40 keys, mixed": { keys: 40, isMixed: true },
  "40 keys, in blocks": { keys: 40 },
  "2,000 keys, mixed": { keys: 2_000, isMixed: true },
  "2,000 keys, in blocks": { keys: 2_000 },
};

async function fillKind(engine: Engine, { keys, isMixed }: Kind): Promise<void> {
  if (keys === 0) return fill(engine, DRAINED, undefined);
  const name = (nth: number) => `customer-${nth % keys}`;
  if (!isMixed) {
    for (let nth = 0; nth < keys; nth++) await fill(engine, DRAINED / keys, name(nth));
    return;
  }
  for (let from = 0; from < DRAINED; from += 1_000)
    await Promise.all(
      Array.from({ length: 1_000 }, (_, nth) => engine.enqueue(work, "many", share(name(from + nth)))),
    );
}

interface Sample {
  readonly rate: number;
  /** Microseconds per job, of this process and of the server. */
  readonly cpu: number;
}

async function drain(store: string, kind: Kind): Promise<Sample> {
  const meter = await ServerMeter.of(store.startsWith("sqlite") ? "" : store);
  const engine = await openEngine({ store, logger: silentLogger });
  if (kind.keys > 0) await engine.queues.configure("default", { fair: {} });
  await fillKind(engine, kind);
  let left = DRAINED;
  let drained = () => {};
  const all = new Promise<void>((resolve) => {
    drained = resolve;
  });
  const does = processor(work, () => {
    left -= 1;
    if (left === 0) drained();
  });
  const [from, own, server] = [performance.now(), process.cpuUsage(), meter.cpu()];
  const worker = engine.work({ processors: [does], queues: { default: { concurrency: 100 } } });
  await all;
  const used = process.cpuUsage(own);
  const ofServer = Number.isNaN(server) ? 0 : meter.cpu() - server;
  const elapsed = performance.now() - from;
  await worker.close();
  await engine.close();
  return { rate: DRAINED / (elapsed / 1_000), cpu: (used.user + used.system + ofServer) / DRAINED };
}

async function drains(name: string, open: () => Promise<string>): Promise<void> {
  const samples = new Map<string, Sample[]>();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [title, kind] of Object.entries(KINDS)) {
      const sample = await drain(await open(), kind);
      if (round > 0) samples.set(title, [...(samples.get(title) ?? []), sample]);
    }
  }
  const middle = (title: string, of: keyof Sample) =>
    median((samples.get(title) ?? []).map((sample) => sample[of]));
  for (const title of Object.keys(KINDS)) {
    const [rate, cpu] = [middle(title, "rate"), middle(title, "cpu")];
    const [plainRate, plainCpu] = [middle("plain", "rate"), middle("plain", "cpu")];
    console.log(
      `${name}: drain of ${DRAINED.toLocaleString("en")}, ${title}: ${rate.toFixed(0)} jobs/s ` +
        `(${(rate / plainRate).toFixed(2)} x), ${cpu.toFixed(1)} µs CPU per job (${(cpu / plainCpu).toFixed(2)} x)`,
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
    if (!(process.env.CURFEW_BENCH_STORES ?? name).split(",").includes(name)) continue;
    if (!only.includes("waits")) await drains(name, open);
    if (!only.includes("drains")) await beside(name, open);
  }
} finally {
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
