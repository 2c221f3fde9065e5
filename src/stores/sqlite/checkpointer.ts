import { Worker } from "node:worker_threads";
import { findPackageFile } from "../../ports/package-file.ts";
import type { Binding } from "./binding.ts";

/** An order to the thread. `store` identifies a store of this process: several may use one file. */
export interface Order {
  readonly kind: "checkpoint" | "close";
  readonly store: number;
  readonly path: string;
  readonly binding: Binding["name"];
}

/** The thread's reply when an order is done or has failed. */
interface Report {
  readonly store: number;
  readonly error: string | undefined;
}

type OnReport = (error: string | undefined) => void;

/** The checkpoint thread of the process. It starts at the first use and ends with the process. */
class CheckpointThread {
  static readonly #running = new Map<string, CheckpointThread>();
  readonly #worker: Worker;
  readonly #waiting = new Map<number, OnReport>();

  static at(url: URL): CheckpointThread {
    let thread = CheckpointThread.#running.get(url.href);
    if (!thread) {
      thread = new CheckpointThread(url);
      CheckpointThread.#running.set(url.href, thread);
    }
    return thread;
  }

  private constructor(url: URL) {
    this.#worker = new Worker(url, { name: "curfew checkpoint" });
    this.#worker.unref();
    this.#worker.on("message", ({ store, error }: Report) => this.#report(store, error));
    this.#worker.on("error", (error) => this.#end(url, error));
    this.#worker.on("exit", () => this.#end(url, new Error("the thread for checkpoints has ended")));
  }

  /** Send one order at a time for each store. */
  send(order: Order, onReport: OnReport): void {
    this.#waiting.set(order.store, onReport);
    this.#worker.postMessage(order);
  }

  /** Keeps the process alive until all orders are done. */
  keepAlive(): void {
    if (this.#waiting.size > 0) this.#worker.ref();
  }

  #report(store: number, error: string | undefined): void {
    const onReport = this.#waiting.get(store);
    this.#waiting.delete(store);
    if (this.#waiting.size === 0) this.#worker.unref();
    onReport?.(error);
  }

  #end(url: URL, error: Error): void {
    if (CheckpointThread.#running.get(url.href) === this) CheckpointThread.#running.delete(url.href);
    for (const store of [...this.#waiting.keys()]) this.#report(store, String(error));
  }
}

export interface CheckpointerOptions {
  readonly path: string;
  readonly binding: Binding["name"];
  /** How many pages of the log are not in the file yet. */
  readonly waiting: () => number;
  /** Called once if no thread can run checkpoints. */
  readonly onFailure: () => void;
  readonly thread?: URL;
}

/**
 * Pages that justify a checkpoint: 16 MB. With SQLite's default of 4 MB, pages that change with every commit would be
 * written four times as often.
 */
const ENOUGH = 4_000;
/** Check the log once in this many commits. A check costs 2 µs. */
const LOOK_EVERY = 8;

let stores = 0;

/**
 * Copies commits from the log into the file, in another thread. SQLite would do it within some commit and wait there
 * for the disk: 5 ms on a fast disk, hundreds on a busy one.
 */
export class Checkpointer {
  readonly #options: CheckpointerOptions;
  readonly #store: number;
  #thread: CheckpointThread | undefined;
  #commits = 0;
  /** The running order. There is at most one. */
  #current: Promise<void> | undefined;
  #isOver = false;

  constructor(options: CheckpointerOptions) {
    this.#options = options;
    stores += 1;
    this.#store = stores;
  }

  committed(): void {
    this.#commits += 1;
    if (this.#commits % LOOK_EVERY !== 0 || this.#isOver || this.#current) return;
    if (this.#options.waiting() >= ENOUGH) void this.#order("checkpoint");
  }

  /** Resolves when the thread has closed the file. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#thread?.keepAlive();
    await this.#current;
    if (!this.#thread) return;
    const closed = this.#order("close");
    this.#thread.keepAlive();
    await closed;
  }

  #order(kind: Order["kind"]): Promise<void> {
    const { path, binding } = this.#options;
    const thread = this.#threadToUse();
    if (!thread) return Promise.resolve();
    const answered = Promise.withResolvers<void>();
    this.#current = answered.promise;
    const onReport: OnReport = (error) => {
      this.#current = undefined;
      if (error !== undefined) this.#fail();
      answered.resolve();
    };
    thread.send({ kind, store: this.#store, path, binding }, onReport);
    return answered.promise;
  }

  /** Undefined if its file is not there, as in a bundle. */
  #threadToUse(): CheckpointThread | undefined {
    const file = this.#options.thread ?? findPackageFile("stores/sqlite/checkpoint-thread");
    if (file) this.#thread ??= CheckpointThread.at(file);
    else this.#fail();
    return this.#thread;
  }

  /** From now on SQLite runs checkpoints in the thread that commits. */
  #fail(): void {
    this.#thread = undefined;
    if (!this.#isOver) this.#options.onFailure();
    this.#isOver = true;
  }
}
