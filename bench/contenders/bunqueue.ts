import { pathToFileURL } from "node:url";
import { BUNQUEUE_CLIENT } from "../bun.ts";
import { type Contender, inBatches, type Payload, payload, payloads } from "../contender.ts";

const QUEUE = "bench";
const NAME = "nothing";
const nothing = () => {};

/** The parts of `bunqueue/client` that are used. It is installed beside the project, because nothing of it runs under Node. */
interface Client {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (
    name: string,
    run: (job: { readonly data: Payload }) => unknown,
    options: object,
  ) => Worker;
  shutdownManager(): void;
}

interface Queue {
  add(name: string, data: Payload, options: { readonly durable: boolean }): Promise<unknown>;
  addBulk(jobs: readonly { readonly name: string; readonly data: Payload }[]): Promise<unknown>;
  getJobCountsAsync(): Promise<{ readonly waiting: number; readonly active: number }>;
  obliterateAsync(): Promise<void>;
  close(): unknown;
}

interface Worker {
  on(event: "error", listener: () => void): unknown;
  close(): Promise<void>;
}

/**
 * Runs under Bun, in the process of its caller. Deletes finished jobs. A single enqueue is `durable`: written before its
 * answer, as those of all others here are. In bulk it answers first and writes within 10 ms, which is its default and twice as fast.
 */
export const bunqueue: Contender = {
  name: "bunqueue",
  role: "peer",
  database: "sqlite",
  runtime: "bun",
  async open(path) {
    const client = (await import(pathToFileURL(BUNQUEUE_CLIENT).href)) as Client;
    const place = { embedded: true, dataPath: path };
    const defaultJobOptions = { removeOnComplete: true };
    const queue = new client.Queue(QUEUE, { ...place, defaultJobOptions });
    return {
      enqueue: (count) =>
        inBatches(count, 1_000, 1, (from, to) =>
          queue.addBulk(payloads(from, to).map((data) => ({ name: NAME, data }))),
        ),
      async add(n) {
        await queue.add(NAME, payload(n), { durable: true });
      },
      async work(concurrency, handler) {
        const worker = new client.Worker(QUEUE, async ({ data }) => handler(data.n, nothing), {
          ...place,
          concurrency,
        });
        worker.on("error", nothing);
        return () => worker.close();
      },
      async isDrained() {
        const { waiting, active } = await queue.getJobCountsAsync();
        return waiting === 0 && active === 0;
      },
      clear: () => queue.obliterateAsync(),
      async close() {
        await queue.close();
        client.shutdownManager();
      },
    };
  },
};
