import { defineJob, type Engine, openEngine, processor, silentLogger } from "../src/index.ts";
import { median } from "./measure.ts";

const BATCH = 10_000;
const SLOTS = 10;
const HANDLER_TIME = 20;
const REPEATS = 9;

const work = defineJob({ type: "work.do" });
const rest = (time: number) => new Promise((resolve) => setTimeout(resolve, time));

async function fill(engine: Engine, count: number): Promise<void> {
  for (let left = count; left > 0; left -= BATCH)
    await engine.enqueueMany(work, Array(Math.min(BATCH, left)).fill("many"), { fairKey: "large" });
}

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

async function waits(store: string, slots: number, before: number) {
  const engine = await openEngine({ store, logger: silentLogger });
  await engine.queues.configure("default", { fair: {} });
  await fill(engine, before);
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

/** Ten jobs of one customer beside many of another, against the same ten alone with half of the slots. */
export async function waitsBeside(name: string, open: () => Promise<string>, jobs: number): Promise<void> {
  const alone = await waits(await open(), SLOTS / 2, 0);
  const shared = await waits(await open(), SLOTS, jobs);
  const line = (what: "started" | "ended") =>
    `last ${what} ${shared[what].toFixed(0)} ms, alone at half the slots ${alone[what].toFixed(0)} ms: ${(shared[what] / alone[what]).toFixed(2)} x`;
  console.log(`${name}: ten jobs beside ${jobs.toLocaleString("en")}: ${line("ended")}; ${line("started")}`);
}
