import { Redis } from "ioredis";
import { defineJob, openEngine, openRedisStore, processor, silentLogger } from "../src/index.ts";
import { DURABLE, findRedis, startNode } from "../test/redis.ts";

/** Measured costs of one master and of one process. CPU and bytes, which do not depend on what else the machine does. */
export interface MeasuredCosts {
  /** µs of the server's CPU. */
  readonly enqueue: number;
  readonly drain: number;
  readonly emptyLook: number;
  readonly emptyClaim: number;
  readonly hintPerSubscriber: number;
  /** µs of the CPU of the process, without handlers. */
  readonly processPerJob: number;
  /** Bytes in and out of the server. */
  readonly wirePerJob: number;
}

const JOBS = 10_000;
const BATCH = 1_000;
const CALLS = 5_000;
const SUBSCRIBERS = 50;
const HINTS = 2_000;
const PAYLOAD = { to: "someone@example.com", text: "12345678901" };

export async function measureCosts(): Promise<MeasuredCosts> {
  const program = await findRedis("valkey");
  if (!program) throw new Error("there is no Valkey server: see docs/guides/redis.md");
  await using server = await startNode(program, DURABLE);
  const admin = new Redis(server.url);
  const infoOf = async (section: string, field: string) =>
    Number(new RegExp(`${field}:([\\d.]+)`).exec(await admin.info(section))?.[1]);
  const cpu = async () =>
    1e6 * ((await infoOf("cpu", "used_cpu_user")) + (await infoOf("cpu", "used_cpu_sys")));
  const bytes = async () =>
    (await infoOf("stats", "total_net_input_bytes")) + (await infoOf("stats", "total_net_output_bytes"));
  const costOf = async (count: number, run: () => Promise<unknown>) => {
    const before = await cpu();
    await run();
    return ((await cpu()) - before) / count;
  };
  try {
    const wireBefore = await bytes();
    const jobs = await jobCosts(`${server.url}?prefix=jobs`, costOf);
    const wirePerJob = ((await bytes()) - wireBefore) / JOBS;
    const calls = await callCosts(server.url, costOf);
    const hintPerSubscriber = await hintCost(server.url, admin, costOf);
    return { ...jobs, ...calls, wirePerJob, hintPerSubscriber };
  } finally {
    admin.disconnect();
  }
}

type CostOf = (count: number, run: () => Promise<unknown>) => Promise<number>;

async function jobCosts(url: string, costOf: CostOf) {
  const engine = await openEngine({ store: url, logger: silentLogger });
  const job = defineJob({ type: "bench.mail" });
  const from = process.cpuUsage();
  try {
    const enqueue = await costOf(JOBS, async () => {
      for (let left = JOBS; left > 0; left -= BATCH)
        await engine.enqueueMany(job, new Array(BATCH).fill(PAYLOAD));
    });
    const drain = await costOf(JOBS, async () => {
      const all = Promise.withResolvers<void>();
      let left = JOBS;
      const run = () => {
        left -= 1;
        if (left === 0) all.resolve();
      };
      const worker = engine.work({
        processors: [processor(job, run)],
        queues: { default: { concurrency: 100 } },
      });
      await all.promise;
      await worker.close();
    });
    const { user, system } = process.cpuUsage(from);
    return { enqueue, drain, processPerJob: (user + system) / JOBS };
  } finally {
    await engine.close();
  }
}

async function callCosts(connection: string, costOf: CostOf) {
  const store = await openRedisStore({ connection, prefix: "calls" });
  const now = await store.clock();
  const claim = { queue: "default", limit: 10, now, lease: 10_000, salt: 1, worker: "w", from: 0 };
  const look = { queues: ["default"], destinations: ["job"], records: [["queues", "revision"]] as const };
  const repeat = (call: () => Promise<unknown>) => async () => {
    for (let left = CALLS; left > 0; left -= 50) await Promise.all(Array.from({ length: 50 }, call));
  };
  try {
    return {
      emptyLook: await costOf(
        CALLS,
        repeat(() => store.look(look)),
      ),
      emptyClaim: await costOf(
        CALLS,
        repeat(() => store.jobs.claim(claim)),
      ),
    };
  } finally {
    await store.close();
  }
}

/** What one more listener of a channel costs the server per message. */
async function hintCost(url: string, admin: Redis, costOf: CostOf): Promise<number> {
  const publish = async () => {
    for (let left = HINTS; left > 0; left -= 50)
      await Promise.all(Array.from({ length: 50 }, () => admin.publish("hints", "a hint of this size")));
  };
  const alone = await costOf(HINTS, publish);
  const listeners = Array.from({ length: SUBSCRIBERS }, () => new Redis(url));
  try {
    await Promise.all(listeners.map((listener) => listener.subscribe("hints")));
    return ((await costOf(HINTS, publish)) - alone) / SUBSCRIBERS;
  } finally {
    for (const listener of listeners) listener.disconnect();
  }
}
