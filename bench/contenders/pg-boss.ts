import pg from "pg";
import { type ConstructorOptions, PgBoss } from "pg-boss";
import { type Contender, inBatches, type Payload, payload } from "../contender.ts";

const QUEUE = "bench";

/** A batch of 100 for each of two workers was the best of a sweep; both intervals are the smallest it takes. */
const WORKER = {
  batchSize: 100,
  localConcurrency: 2,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
  burstWhenBatchFull: true,
};

const SHORT: ConstructorOptions = { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 };

/** Keeps finished jobs. A batch is handled by one call, so its concurrency is always that of WORKER. */
export const pgBoss: Contender = {
  name: "pg-boss",
  role: "peer",
  database: "postgres",
  async open(url, { short = false } = {}) {
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    const boss = new PgBoss({ connectionString: url, useListenNotify: true, ...(short && SHORT) });
    boss.on("error", () => {});
    await boss.start();
    const limits = short ? { expireInSeconds: 1, retryLimit: 3, retryDelay: 0 } : {};
    if (!(await boss.getQueue(QUEUE))) await boss.createQueue(QUEUE, { notify: true });
    const insert = async (total: number, startAfter?: (n: number) => Date) => {
      await inBatches(total, 5_000, 2, async (from, to) => {
        const jobs = [];
        for (let n = from; n < to; n++) {
          jobs.push({ data: payload(n), ...limits, ...(startAfter && { startAfter: startAfter(n) }) });
        }
        await boss.insert(QUEUE, jobs);
      });
    };
    return {
      enqueue: insert,
      async add(n) {
        await boss.send(QUEUE, payload(n), limits);
      },
      delay: (dueAt) => insert(dueAt.length, (n) => new Date(dueAt[n] as number)),
      async work(_concurrency, handler) {
        // A batch of one job each where jobs are to fail alone.
        const options = short ? { ...WORKER, batchSize: 1, localConcurrency: 10 } : WORKER;
        await boss.work<Payload>(QUEUE, options, async (jobs) => {
          for (const { data } of jobs) await handler(data.n, () => {});
        });
        return () => boss.offWork(QUEUE, { wait: true });
      },
      async isDrained() {
        const text =
          "select 1 from pgboss.job where name = $1 and state < 'completed' and start_after <= now() limit 1";
        return (await pool.query(text, [QUEUE])).rowCount === 0;
      },
      async clear() {
        await pool.query("truncate pgboss.job");
      },
      async close() {
        await boss.stop({ graceful: false });
        await pool.end();
      },
    };
  },
};
