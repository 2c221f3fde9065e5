/**
 * `npm run bench:redis -- [--jobs 20000] [--rounds 3] [--server valkey] [--delayed 1000000] [--only pickup,single]`: curfew
 * and BullMQ on one server, in turns.
 * Finished jobs are kept by both. CPU is that of the server's process, so it says what one node carries whatever else
 * the machine does. `--delayed` adds that many delayed jobs first, to see whether they cost anything.
 */
import { parseArgs } from "node:util";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { defineJob, openEngine, processor, silentLogger } from "../src/index.ts";
import { DURABLE, findRedis, startNode } from "../test/redis.ts";
import { wholeNumber } from "../test/support/whole-number.ts";
import { median } from "./measure.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "20000" },
    rounds: { type: "string", default: "3" },
    server: { type: "string", default: "valkey" },
    delayed: { type: "string", default: "0" },
    only: { type: "string", default: "drain,single,pickup,lateness" },
  },
});
const jobs = wholeNumber("jobs", values.jobs, 1);
const rounds = wholeNumber("rounds", values.rounds, 1);
const delayed = wholeNumber("delayed", values.delayed, 0);
const only = new Set(values.only.split(","));
const SINGLES = 20_000;
const PRODUCERS = 10;
const PICKUPS = 1_000;
const LATE = 20_000;
/** Jobs that fall due together, the time in which all do, and when the first does. */
const LATE_STEP = 20;
const LATE_WITHIN = 10_000;
const LATE_AFTER = 8_000;
const PAYLOAD = { to: "someone@example.com", text: "12345678901" };
const BATCH = 1_000;

/** What a contender does. `onRun` is called in the handler of each job. */
interface Contender {
  readonly name: string;
  enqueueMany(count: number, delay?: number): Promise<void>;
  enqueueOne(): Promise<void>;
  work(concurrency: number, onRun: () => void): { stop(): Promise<void> };
  close(): Promise<void>;
}

async function openCurfew(url: string, prefix: string): Promise<Contender> {
  const engine = await openEngine({ store: `${url}?prefix=${prefix}`, logger: silentLogger });
  const job = defineJob({ type: "bench.mail" });
  return {
    name: "curfew",
    async enqueueMany(count, delay) {
      for (let left = count; left > 0; left -= BATCH) {
        const batch = new Array(Math.min(left, BATCH)).fill(PAYLOAD);
        await engine.enqueueMany(job, batch, delay === undefined ? {} : { delay: `${delay}ms` });
      }
    },
    async enqueueOne() {
      await engine.enqueue(job, PAYLOAD);
    },
    work(concurrency, onRun) {
      const worker = engine.work({
        processors: [processor(job, onRun)],
        queues: { default: { concurrency } },
      });
      return { stop: async () => void (await worker.close()) };
    },
    close: () => engine.close(),
  };
}

async function openBullMq(url: string, prefix: string): Promise<Contender> {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue("bench", { connection, prefix });
  await queue.waitUntilReady();
  return {
    name: "BullMQ",
    async enqueueMany(count, delay) {
      const one = { name: "mail", data: PAYLOAD, ...(delay !== undefined && { opts: { delay } }) };
      for (let left = count; left > 0; left -= BATCH)
        await queue.addBulk(new Array(Math.min(left, BATCH)).fill(one));
    },
    async enqueueOne() {
      await queue.add("mail", PAYLOAD);
    },
    work(concurrency, onRun) {
      const worker = new Worker("bench", async () => onRun(), { connection, prefix, concurrency });
      return { stop: () => worker.close() };
    },
    close: () => queue.close(),
  };
}

const program = await findRedis(values.server === "redis" ? "redis" : "valkey");
if (!program) throw new Error("there is no server");
const server = await startNode(program, DURABLE);
const redis = new Redis(server.url);

async function infoOf(section: string, field: string): Promise<number> {
  return Number(new RegExp(`${field}:([\\d.]+)`).exec(await redis.info(section))?.[1]);
}

/** Microseconds of CPU that the server has used. */
async function cpu(): Promise<number> {
  return 1e6 * ((await infoOf("cpu", "used_cpu_user")) + (await infoOf("cpu", "used_cpu_sys")));
}

const figures = new Map<string, number[]>();

function note(contender: Contender, what: string, value: number): void {
  const key = `${what}\t${contender.name}`;
  figures.set(key, [...(figures.get(key) ?? []), value]);
}

async function rate(
  contender: Contender,
  what: string,
  count: number,
  run: () => Promise<void>,
): Promise<void> {
  const [from, used] = [performance.now(), await cpu()];
  await run();
  note(contender, `${what}, jobs/s`, (count / (performance.now() - from)) * 1_000);
  note(contender, `${what}, µs of server CPU a job`, ((await cpu()) - used) / count);
}

async function drain(contender: Contender, concurrency: number): Promise<void> {
  await contender.enqueueMany(jobs);
  await rate(contender, `drain at ${concurrency}`, jobs, () => runAll(contender, concurrency, jobs));
}

/** Works until this many jobs have run. */
async function runAll(contender: Contender, concurrency: number, count: number): Promise<void> {
  const all = Promise.withResolvers<void>();
  let left = count;
  const { stop } = contender.work(concurrency, () => {
    left -= 1;
    if (left === 0) all.resolve();
  });
  await all.promise;
  await stop();
}

/** Milliseconds from the call of an enqueue to its handler, one job at a time. */
async function pickups(contender: Contender): Promise<void> {
  let ran = () => {};
  const { stop } = contender.work(10, () => ran());
  const taken: number[] = [];
  for (let pickup = 0; pickup < PICKUPS; pickup++) {
    const from = performance.now();
    const run = new Promise<void>((resolve) => {
      ran = resolve;
    });
    await contender.enqueueOne();
    await run;
    taken.push(performance.now() - from);
  }
  await stop();
  taken.sort((a, b) => a - b);
  note(contender, "pickup p50, ms", taken[taken.length >> 1] as number);
  note(contender, "pickup p99, ms", taken[Math.floor(taken.length * 0.99)] as number);
}

/** How late delayed jobs start that fall due one after the other. */
async function lateness(contender: Contender): Promise<void> {
  const all = Promise.withResolvers<void>();
  const dueAt: number[] = [];
  const late: number[] = [];
  const { stop } = contender.work(100, () => {
    // They start in the order in which they are due, give or take a few.
    late.push(Date.now() - (dueAt[late.length] as number));
    if (late.length === LATE) all.resolve();
  });
  const from = Date.now() + LATE_AFTER;
  for (let step = 0; step < LATE / LATE_STEP; step++) {
    const due = Math.round(from + (step * LATE_STEP * LATE_WITHIN) / LATE);
    for (let job = 0; job < LATE_STEP; job++) dueAt.push(due);
    await contender.enqueueMany(LATE_STEP, due - Date.now());
  }
  await all.promise;
  await stop();
  late.sort((a, b) => a - b);
  const what = `lateness of ${LATE} jobs due in ${LATE_WITHIN / 1_000} s`;
  note(contender, `${what}, p50, ms`, late[late.length >> 1] as number);
  note(contender, `${what}, p99, ms`, late[Math.floor(late.length * 0.99)] as number);
}

/** Bulk enqueues, drains and what jobs take in memory. */
async function drains(contender: Contender): Promise<void> {
  const memory = await infoOf("memory", "used_memory");
  await rate(contender, "bulk enqueue", jobs, () => contender.enqueueMany(jobs));
  note(contender, "bytes of a waiting job", ((await infoOf("memory", "used_memory")) - memory) / jobs);
  // The jobs of each part have to be gone before the next one: it would count them as its own.
  await runAll(contender, 100, jobs);
  await drain(contender, 10);
  await drain(contender, 100);
  note(contender, "bytes of a kept job", ((await infoOf("memory", "used_memory")) - memory) / (3 * jobs));
}

async function singles(contender: Contender): Promise<void> {
  await rate(contender, `single enqueue, ${PRODUCERS} at once`, SINGLES, async () => {
    const one = async () => {
      for (let count = 0; count < SINGLES / PRODUCERS; count++) await contender.enqueueOne();
    };
    await Promise.all(Array.from({ length: PRODUCERS }, one));
  });
  await runAll(contender, 100, SINGLES);
}

const PARTS = { drain: drains, single: singles, pickup: pickups, lateness };

async function roundOf(contender: Contender): Promise<void> {
  if (delayed > 0) await contender.enqueueMany(delayed, 86_400_000);
  for (const [name, measure] of Object.entries(PARTS)) if (only.has(name)) await measure(contender);
}

const contenders = [openCurfew, openBullMq];
for (let round = 1; round <= rounds; round++) {
  // The second one of a round has a warmer server, so they change places.
  for (const open of round % 2 === 1 ? contenders : contenders.toReversed()) {
    const contender = await open(server.url, `round${round}`);
    await roundOf(contender);
    await contender.close();
    // Servers free memory later if they may, and the next contender would be measured meanwhile.
    await redis.flushdb("SYNC");
  }
}
const whats = [...new Set([...figures.keys()].map((key) => key.split("\t")[0] as string))];
console.log("| | curfew | BullMQ | curfew / BullMQ |\n|---|---:|---:|---:|");
for (const what of whats) {
  const [ours, theirs] = ["curfew", "BullMQ"].map((name) => median(figures.get(`${what}\t${name}`) ?? []));
  const show = (value: number | undefined) =>
    (value ?? 0).toLocaleString("en", { maximumFractionDigits: value && value < 100 ? 1 : 0 });
  console.log(`| ${what} | ${show(ours)} | ${show(theirs)} | ${((ours ?? 0) / (theirs ?? 1)).toFixed(2)} |`);
}
redis.disconnect();
await server[Symbol.asyncDispose]();
