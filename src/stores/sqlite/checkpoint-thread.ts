/**
 * The thread that does checkpoints for all stores of a process. Each order is answered when it is done. It loads nothing
 * but the driver, so that it starts quickly.
 */
import { parentPort } from "node:worker_threads";
import Database from "better-sqlite3";
import type { Order } from "./checkpointer.ts";

/** How long writers may keep it from the log when that must be begun anew; there is no hurry in this thread. */
const PATIENCE = 1_000;
/** Beyond so many pages the log is emptied even though somebody always writes: 32 MB. */
const MOST_FRAMES = 8_000;
/** Brings as much of the log into the file as nobody reads or writes, and waits for nobody. Gives 0, all, done. */
const CHECKPOINT = "wal_checkpoint(passive)";
/** Brings all of it, keeping writers off, so that the next one begins the log anew. */
const RESTART = "wal_checkpoint(restart)";

const files = new Map<number, InstanceType<typeof Database>>();

function fileOf({ store, path }: Order): InstanceType<typeof Database> {
  let file = files.get(store);
  if (!file) {
    file = new Database(path, { timeout: PATIENCE });
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
  // Whoever writes all the time lets the log grow without end; this keeps all writers off for as long as it takes.
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
