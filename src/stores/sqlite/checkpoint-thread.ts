/** What a `Checkpointer` runs in a thread of its own: each message asks for a checkpoint, and is answered when it is done. */
import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { CHECKPOINT, RESTART_LOG } from "./statements.ts";

/** How long writers may keep it from the log when that must be begun anew; there is no hurry in this thread. */
const PATIENCE = 1_000;
/** Beyond so many pages the log is emptied even though somebody always writes: 32 MB. */
const MOST_FRAMES = 8_000;

const database = new Database(workerData as string, { timeout: PATIENCE });
database.pragma("synchronous = normal");
database.pragma("checkpoint_fullfsync = on");
const checkpoint = database.prepare(CHECKPOINT).raw();
const restartLog = database.prepare(RESTART_LOG).raw();

parentPort?.on("message", (order: "checkpoint" | "close") => {
  if (order === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  const [, frames] = checkpoint.get() as number[];
  // Whoever writes all the time lets the log grow without end; this keeps all writers off for as long as it takes.
  if ((frames as number) > MOST_FRAMES) restartLog.get();
  parentPort?.postMessage("done");
});
