/**
 * `npm run bench:beside -- [--delayed 1000000] [--jobs 20000] [--rounds 6] [--server valkey]`: whether delayed jobs cost those that are
 * due anything. Four stores take turns: one on an empty server, one on a server with as many foreign keys of 20 bytes, one that
 * is empty beside a store with the delayed jobs on the same server, and the one that has the delayed jobs. The second and the third pay for
 * the hash table of the server, the fourth for longer indexes, too. CPU is that of the server's main thread.
 */
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { defineJob, openEngine, processor, silentLogger } from "../src/index.ts";
import { DURABLE, findRedis, type RedisNode, startNode } from "../test/redis.ts";
import { wholeNumber } from "../test/support/whole-number.ts";
import { median } from "./measure.ts";

const { values } = parseArgs({
  options: {
    delayed: { type: "string", default: "1000000" },
    jobs: { type: "string", default: "20000" },
    rounds: { type: "string", default: "6" },
    server: { type: "string", default: "valkey" },
    concurrency: { type: "string", default: "100" },
  },
});
const jobs = wholeNumber("jobs", values.jobs, 1);
const rounds = wholeNumber("rounds", values.rounds, 1);
const delayed = wholeNumber("delayed", values.delayed, 1);
const concurrency = wholeNumber("concurrency", values.concurrency, 1);
const PAYLOAD = { to: "someone@example.com", text: "12345678901" };
const BATCH = 1_000;
const DAY = 86_400_000;
const SOON = 300;
const job = defineJob({ type: "bench.mail", retention: "0s" });

async function open(node: RedisNode, prefix: string) {
  const engine = await openEngine({ store: `${node.url}?prefix=${prefix}`, logger: silentLogger });
  const redis = new Redis(node.url);
  const field = async (section: string, name: string) =>
    Number(new RegExp(`${name}:([\\d.]+)`).exec(await redis.info(section))?.[1]);
  return {
    engine,
    redis,
    /** Microseconds that the thread has used which runs commands. */
    async cpu() {
      const name = (of: string) => `used_cpu_${of}_main_thread`;
      return 1e6 * ((await field("cpu", name("user"))) + (await field("cpu", name("sys"))));
    },
    /** Writes the append-only file anew, and not again: a child that shares its memory costs a server with much of it more. */
    async calm() {
      await redis.config("SET", "auto-aof-rewrite-percentage", "0");
      await redis.call("bgrewriteaof").catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 500));
      while ((await field("persistence", "aof_rewrite_in_progress")) === 1)
        await new Promise((resolve) => setTimeout(resolve, 200));
    },
    async enqueue(count: number, delay?: number) {
      for (let left = count; left > 0; left -= BATCH) {
        const batch = new Array(Math.min(left, BATCH)).fill(PAYLOAD);
        await engine.enqueueMany(job, batch, delay === undefined ? {} : { delay: `${delay}ms` });
      }
    },
    async run(count: number) {
      const all = Promise.withResolvers<void>();
      let left = count;
      const worker = engine.work({
        processors: [
          processor(job, () => {
            left -= 1;
            if (left === 0) all.resolve();
          }),
        ],
        queues: { default: { concurrency } },
      });
      await all.promise;
      await worker.close();
    },
  };
}

type Opened = Awaited<ReturnType<typeof open>>;

const program = await findRedis(values.server === "redis" ? "redis" : "valkey");
if (!program) throw new Error("there is no server");
const flags = [...DURABLE, "--enable-debug-command", "local"];
const [small, foreign, large] = [
  await startNode(program, flags),
  await startNode(program, flags),
  await startNode(program, flags),
];
const stores: readonly (readonly [string, Opened])[] = [
  ["empty server", await open(small, "empty")],
  [`empty store on a server with ${delayed} foreign keys`, await open(foreign, "beside")],
  [`empty store on a server with ${delayed} delayed jobs`, await open(large, "beside")],
  [`store with ${delayed} delayed jobs`, await open(large, "full")],
];
await stores[1]?.[1].redis.call("debug", "populate", delayed, "key", 20);
await stores[3]?.[1].enqueue(delayed, DAY);
for (const at of [0, 1, 3]) await stores[at]?.[1].calm();

const figures = new Map<string, number[]>();

async function measure(name: string, what: string, store: Opened, run: () => Promise<void>): Promise<void> {
  const [from, used] = [performance.now(), await store.cpu()];
  await run();
  const rate = (jobs / (performance.now() - from)) * 1_000;
  const cpu = ((await store.cpu()) - used) / jobs;
  for (const [key, value] of Object.entries({ "jobs/s": rate, µs: cpu })) {
    const all = figures.get(`${what}\t${name}\t${key}`) ?? [];
    figures.set(`${what}\t${name}\t${key}`, [...all, value]);
  }
}

for (let round = 0; round <= rounds; round++) {
  for (const [name, store] of stores) {
    await measure(name, "enqueue", store, () => store.enqueue(jobs));
    await measure(name, "claim and settle", store, () => store.run(jobs));
    await measure(name, "enqueue delayed, sweep, claim and settle", store, async () => {
      await store.enqueue(jobs, SOON);
      await store.run(jobs);
    });
  }
  // The first round warms everything up.
  if (round === 0) figures.clear();
}

const [first] = stores;
console.log(
  "| | store | jobs/s | µs of the server a job, least to most | share of the empty server's rate by CPU |\n|---|---|---:|---:|---:|",
);
for (const what of ["enqueue", "claim and settle", "enqueue delayed, sweep, claim and settle"])
  for (const [name] of stores) {
    const of = (key: string, store = name) => figures.get(`${what}\t${store}\t${key}`) ?? [];
    const cpu = of("µs");
    const share = (median(of("µs", first?.[0])) ?? 0) / (median(cpu) ?? 1);
    const rate = Math.round(median(of("jobs/s")) ?? 0).toLocaleString("en");
    const range = `${median(cpu)?.toFixed(1)} (${Math.min(...cpu).toFixed(1)} to ${Math.max(...cpu).toFixed(1)})`;
    console.log(`| ${what} | ${name} | ${rate} | ${range} | ${(100 * share).toFixed(0)} % |`);
  }
for (const [, { engine, redis }] of stores) {
  await engine.close();
  redis.disconnect();
}
await Promise.all([small, foreign, large].map((node) => node[Symbol.asyncDispose]()));
