/**
 * The thread that runs checkpoints for all stores of a process. It answers each order when it is done. It loads only
 * the driver, so that it starts quickly.
 */
import { createRequire } from "node:module";
import { parentPort } from "node:worker_threads";
import type { DatabaseClass } from "./binding.ts";
import { builtinSqlite } from "./builtin-sqlite.ts";
import type { Order } from "./checkpointer.ts";

/** How long a restart of the log waits for writers, in milliseconds. Nothing else waits for this thread. */
const LOCK_WAIT = 1_000;
/** Above this many pages (32 MB), the log is restarted even if there are always writers. */
const MOST_FRAMES = 8_000;
/**
 * Copies the part of the log that no connection uses into the file, without waiting. Returns 0, all pages, copied
 * pages.
 */
const CHECKPOINT = "pragma wal_checkpoint(passive)";
/** Copies the whole log and blocks writers meanwhile, so that the next writer starts the log from its beginning. */
const RESTART = "pragma wal_checkpoint(restart)";

interface OpenFile extends InstanceType<DatabaseClass> {
  prepare(text: string): { get(): unknown };
}

const require = createRequire(import.meta.url);
const files = new Map<number, OpenFile>();

function fileOf({ store, path, binding }: Order): OpenFile {
  let file = files.get(store);
  if (!file) {
    file = new (classOf(binding))(path, { timeout: LOCK_WAIT }) as OpenFile;
    file.exec("pragma synchronous = normal; pragma checkpoint_fullfsync = on");
    files.set(store, file);
  }
  return file;
}

/** The same copy of SQLite as in the thread that commits. */
function classOf(binding: Order["binding"]): DatabaseClass {
  if (binding === "better-sqlite3") return require("better-sqlite3") as DatabaseClass;
  return builtinSqlite()?.DatabaseSync as unknown as DatabaseClass;
}

function carryOut(order: Order): void {
  if (order.kind === "close") {
    files.get(order.store)?.close();
    files.delete(order.store);
    return;
  }
  const file = fileOf(order);
  const state = file.prepare(CHECKPOINT).get() as { log: number };
  // Constant writes would let the log grow without end. This blocks all writers until it is done.
  if (state.log > MOST_FRAMES) file.prepare(RESTART).get();
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
