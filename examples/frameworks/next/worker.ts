import { getEngine } from "./engine.ts";
import { processors } from "./jobs.ts";

/** A worker beside the server, in its process. It drains at SIGTERM; set NEXT_MANUAL_SIG_HANDLE=true for that. */
export async function startWorker(): Promise<void> {
  const engine = await getEngine();
  engine.work({ processors, drain: "20s" });
  const stop = async () => {
    await engine.close();
    process.exit(0);
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}
