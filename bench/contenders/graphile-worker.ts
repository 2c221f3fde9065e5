import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { type Contender, inBatches, type Payload, payload } from "../contender.ts";

/** With batching on, as its performance page says; it polls ten times a second instead of every two. */
const preset = {
  worker: {
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    pollInterval: 100,
    preparedStatements: true,
    schema: "graphile_worker",
    maxPoolSize: 10,
  },
};

const logger = new Logger(() => () => {});
const IDENTIFIER = "nothing";

/** Deletes finished jobs. How long a dead worker's jobs stay with it cannot be set: it is 4 hours. */
export const graphileWorker: Contender = {
  name: "graphile-worker",
  role: "peer",
  database: "postgres",
  async open(url) {
    const pgPool = new pg.Pool({ connectionString: url, max: 20 });
    pgPool.on("error", () => {});
    pgPool.on("connect", (client) => client.on("error", () => {}));
    const jobs = await makeWorkerUtils({ pgPool, logger });
    await jobs.migrate();
    return {
      async enqueue(count) {
        await inBatches(count, 5_000, 2, async (from, to) => {
          const specs = [];
          for (let n = from; n < to; n++) specs.push({ identifier: IDENTIFIER, payload: payload(n) });
          await jobs.addJobs(specs);
        });
      },
      async add(n) {
        await jobs.addJob(IDENTIFIER, payload(n));
      },
      async delay(dueAt) {
        await inBatches(dueAt.length, 5_000, 2, async (from, to) => {
          const specs = dueAt.slice(from, to).map((at, index) => ({
            identifier: IDENTIFIER,
            payload: payload(from + index),
            runAt: new Date(at),
          }));
          await jobs.addJobs(specs);
        });
      },
      async work(concurrency, handler) {
        const taskList = { [IDENTIFIER]: async (job: unknown) => handler((job as Payload).n, () => {}) };
        const runner = await run({ pgPool, logger, concurrency, noHandleSignals: true, preset, taskList });
        return () => runner.stop();
      },
      async isDrained() {
        const text = "select 1 from graphile_worker._private_jobs where run_at <= now() limit 1";
        return (await pgPool.query(text)).rowCount === 0;
      },
      async clear() {
        await pgPool.query("truncate graphile_worker._private_jobs");
      },
      async close() {
        await jobs.release();
        await pgPool.end();
      },
    };
  },
};
