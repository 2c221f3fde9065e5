import { Queue, Worker } from "bullmq";
import { type Contender, inBatches, type Payload, payload, payloads } from "../contender.ts";

const QUEUE = "bench";
const NAME = "nothing";
const nothing = () => {};

/** Deletes finished jobs. Redis writes its log every second, as the production guide of BullMQ says. */
export const bullmq: Contender = {
  name: "BullMQ",
  role: "peer",
  database: "redis",
  async open(url) {
    const connection = { url, maxRetriesPerRequest: null };
    const queue = new Queue<Payload>(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
    queue.on("error", nothing);
    return {
      enqueue: (count) =>
        inBatches(count, 500, 2, (from, to) =>
          queue.addBulk(payloads(from, to).map((data) => ({ name: NAME, data }))),
        ),
      async add(n) {
        await queue.add(NAME, payload(n));
      },
      delay: (dueAt) =>
        inBatches(dueAt.length, 500, 2, (from, to) =>
          queue.addBulk(
            dueAt.slice(from, to).map((at, index) => ({
              name: NAME,
              data: payload(from + index),
              opts: { delay: Math.max(0, Math.round(at - Date.now())) },
            })),
          ),
        ),
      async work(concurrency, handler) {
        const worker = new Worker<Payload>(QUEUE, async ({ data }) => handler(data.n, nothing), {
          connection,
          concurrency,
        });
        worker.on("error", nothing);
        return () => worker.close();
      },
      async isDrained() {
        const { waiting, active } = await queue.getJobCounts("waiting", "active");
        return waiting === 0 && active === 0;
      },
      clear: () => queue.obliterate({ force: true }),
      close: () => queue.close(),
    };
  },
};
