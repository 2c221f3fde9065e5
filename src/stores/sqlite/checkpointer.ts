import { extname } from "node:path";
import { Worker } from "node:worker_threads";

const THREAD = new URL(`./checkpoint-thread${extname(import.meta.url)}`, import.meta.url);

export interface CheckpointerOptions {
  readonly path: string;
  /** How many pages of the log are not in the file yet. */
  readonly waiting: () => number;
  /** Called once if there is no thread to do it. */
  readonly onFailure: () => void;
  readonly thread?: URL;
}

/** Pages that are worth a checkpoint: 4 MB, as SQLite itself has it. */
const ENOUGH = 1_000;
/** Looking costs 2 µs, so it is not done after each commit. */
const LOOK_EVERY = 8;

/**
 * Brings what was committed from the log into the file. SQLite would do that within some commit, and wait there for the
 * disk: 5 ms on a fast one, and hundreds on a busy one. So it is done by another thread, which is started when there is
 * first enough to do.
 */
export class Checkpointer {
  readonly #options: CheckpointerOptions;
  #worker: Worker | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #commits = 0;
  #isBusy = false;

  constructor(options: CheckpointerOptions) {
    this.#options = options;
  }

  committed(): void {
    this.#commits += 1;
    if (this.#commits % LOOK_EVERY !== 0 || this.#isBusy || this.#options.waiting() < ENOUGH) return;
    this.#isBusy = true;
    this.#worker ??= this.#start();
    this.#worker.postMessage("checkpoint");
  }

  async close(): Promise<void> {
    this.#isBusy = true;
    // Whoever closes waits for the end, so from here on it keeps the process alive.
    this.#worker?.ref();
    this.#worker?.postMessage("close");
    await this.#ended;
  }

  #start(): Worker {
    const { path, onFailure, thread = THREAD } = this.#options;
    const worker = new Worker(thread, { name: "curfew checkpoint", workerData: path });
    worker.unref();
    worker.on("message", () => {
      this.#isBusy = false;
    });
    // It stays busy for good: from then on SQLite does it in the thread that commits.
    worker.on("error", onFailure);
    this.#ended = new Promise((resolve) => worker.once("exit", resolve));
    return worker;
  }
}
