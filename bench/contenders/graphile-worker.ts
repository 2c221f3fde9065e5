import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { type Contender, countdown, inBatches, payload } from "../contender.ts";

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

export const graphileWorker: Contender = {
  name: "graphile-worker",
  async open(url) {
    const pgPool = new pg.Pool({ connectionString: url, max: 20 });
    pgPool.on("error", () => {});
    const utils = await makeWorkerUtils({ pgPool, logger });
    await utils.migrate();
    const isEmpty = async () =>
      (await pgPool.query("select 1 from graphile_worker._private_jobs limit 1")).rowCount === 0;
    return {
      async enqueue(count) {
        await inBatches(count, 5_000, 2, async (from, to) => {
          const specs = [];
          for (let n = from; n < to; n++) specs.push({ identifier: "nothing", payload: payload(n) });
          await utils.addJobs(specs);
        });
      },
      async drain(count, concurrency, begin) {
        const { done, reached } = countdown(count, begin);
        const runner = await run({
          pgPool,
          logger,
          concurrency,
          noHandleSignals: true,
          preset,
          taskList: { nothing: async () => done() },
        });
        await reached;
        while (!(await isEmpty())) {
          // The last batches are on their way; asking again is what a user without a better signal would do.
        }
        return () => runner.stop();
      },
      async clear() {
        await pgPool.query("truncate graphile_worker._private_jobs");
      },
      async close() {
        await utils.release();
        await pgPool.end();
      },
    };
  },
};
