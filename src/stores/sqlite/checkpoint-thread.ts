/**
 * The thread that runs checkpoints for all stores of a process. It answers each order when it is done. It loads only
 * the driver, so that it starts quickly.
 */
import { parentPort } from "node:worker_threads";
import Database from "better-sqlite3";
import type { Order } from "./checkpointer.ts";

/** How long a restart of the log waits for writers, in milliseconds. Nothing else waits for this thread. */
const LOCK_WAIT = 1_000;
/** Above this many pages (32 MB), the log is restarted even if there are always writers. */
const MOST_FRAMES = 8_000;
/**
 * Copies the part of the log that no connection uses into the file, without waiting. Returns 0, all pages, copied
 * pages.
 */
const CHECKPOINT = "wal_checkpoint(passive)";
/** Copies the whole log and blocks writers meanwhile, so that the next writer starts the log from its beginning. */
const RESTART = "wal_checkpoint(restart)";

const files = new Map<number, InstanceType<typeof Database>>();

function fileOf({ store, path }: Order): InstanceType<typeof Database> {
  let file = files.get(store);
  if (!file) {
    file = new Database(path, { timeout: LOCK_WAIT });
    file.pragma("synchronous = normal");
    file.pragma("checkpoint_fullfsync = on");
    files.set(store, file);
  }
  return file;
}

function carryOut(order: Order): void {
  if (order.kind === "close") {
    files.get(order.store)?.close();
    files.delete(order.store);
    return;
  }
  const [state] = fileOf(order).pragma(CHECKPOINT) as { log: number }[];
  // Constant writes would let the log grow without end. This blocks all writers until it is done.
  if (state && state.log > MOST_FRAMES) fileOf(order).pragma(RESTART);
}

parentPort?.on("message", (order: Order) => {
  let error: string | undefined;
  try {
    carryOut(order);
  } catch (caught) {
    error = String(caught);
  }
  parentPort?.postMessage({ store: order.store, error });
});
