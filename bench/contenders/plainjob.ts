import Database from "better-sqlite3";
import { better, defineQueue, defineWorker } from "plainjob";
import { type Contender, inBatches, type Payload, payload, payloads } from "../contender.ts";

const JOB_TYPE = "nothing";
/** More of its workers in one process make it no faster. */
const MOST_WORKERS = 10;

const nothing = () => {};
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const SHORT = { timeout: 1_000, maintenanceInterval: 1_000 };

/**
 * Keeps finished jobs. Polls every 10 ms instead of every second. Its commits are not waited for by a sync
 * (`synchronous = normal`, its own setting), so a power cut may take acknowledged jobs.
 */
export const plainjob: Contender = {
  name: "plainjob",
  role: "peer",
  database: "sqlite",
  async open(path, { short = false } = {}) {
    const database = new Database(path);
    const queue = defineQueue({ connection: better(database), logger, ...(short && SHORT) });
    const left = database.prepare(
      "select 1 from plainjob_jobs where type = ? and status in (0, 1) and next_run_at <= ? limit 1",
    );
    return {
      async enqueue(count) {
        await inBatches(count, 500, 1, async (from, to) => queue.addMany(JOB_TYPE, payloads(from, to)));
      },
      async add(n) {
        queue.add(JOB_TYPE, payload(n));
      },
      async delay(dueAt) {
        // Its delays are counted from the call, and of one call all are the same.
        const add = database.transaction((from: number, to: number) => {
          for (let n = from; n < to; n++) {
            queue.add(JOB_TYPE, payload(n), { delay: Math.round((dueAt[n] as number) - Date.now()) });
          }
        });
        await inBatches(dueAt.length, 500, 1, async (from, to) => add(from, to));
      },
      async work(concurrency, handler) {
        const workers = Array.from({ length: Math.min(concurrency, MOST_WORKERS) }, () =>
          defineWorker(
            JOB_TYPE,
            async ({ data }) => handler((JSON.parse(data) as Payload).n, nothing),
            // The name of the option is spelled like this.
            { queue, logger, pollIntervall: 10 },
          ),
        );
        const ended = workers.map((worker) => worker.start());
        return async () => {
          await Promise.all(workers.map((worker) => worker.stop()));
          await Promise.all(ended);
        };
      },
      isDrained: async () => left.get(JOB_TYPE, Date.now()) === undefined,
      async clear() {
        database.exec("delete from plainjob_jobs");
      },
      close: async () => queue.close(),
    };
  },
};
