import pg from "pg";
import { PgBoss } from "pg-boss";
import { type Contender, countdown, inBatches, payload } from "../contender.ts";

const QUEUE = "bench";

/** A batch of 100 for each of two workers was its best of a sweep; it keeps finished jobs, as it always does. */
export const pgBoss: Contender = {
  name: "pg-boss",
  async open(url) {
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    const boss = new PgBoss({ connectionString: url, useListenNotify: true });
    boss.on("error", () => {});
    await boss.start();
    await boss.createQueue(QUEUE, { notify: true });
    const count = async () => {
      const { rows } = await pool.query(
        "select 1 from pgboss.job where name = $1 and state < 'completed' limit 1",
        [QUEUE],
      );
      return rows.length;
    };
    return {
      async enqueue(total) {
        await inBatches(total, 5_000, 2, async (from, to) => {
          const jobs = [];
          for (let n = from; n < to; n++) jobs.push({ data: payload(n) });
          await boss.insert(QUEUE, jobs);
        });
      },
      async drain(total, _concurrency, begin) {
        const { done, reached } = countdown(total, begin);
        await boss.work(
          QUEUE,
          {
            batchSize: 100,
            localConcurrency: 2,
            pollingIntervalSeconds: 0.5,
            notifyPollingIntervalSeconds: 0.5,
            burstWhenBatchFull: true,
          },
          async (jobs) => {
            for (const _job of jobs) done();
          },
        );
        await reached;
        while ((await count()) > 0) {
          // The last batches are on their way; asking again is what a user without a better signal would do.
        }
        return () => boss.offWork(QUEUE, { wait: true });
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
