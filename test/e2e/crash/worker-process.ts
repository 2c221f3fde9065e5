/** A worker process of the crash test: it works until it is killed, and writes down every entry into a handler. */

import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { openEngine, processor, silentLogger } from "../../../src/index.ts";
import { type CrashPayload, crashJob } from "./jobs.ts";

const [store = "", entries = ""] = process.argv.slice(2);
const engine = await openEngine({ store, logger: silentLogger });

async function run(payload: CrashPayload, attempt: number, signal: AbortSignal): Promise<void> {
  const wait = (delay: number) => new Promise<void>((resolve) => setTimeout(resolve, delay));
  if (payload.behaviour === "slow") await wait(payload.takes);
  if (payload.behaviour === "flaky" && attempt % 3 !== 0) throw new Error("flaky as told");
  if (payload.behaviour === "hang" && attempt === 1) {
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
}

engine.work({
  queues: { default: { concurrency: 20 } },
  drain: "2s",
  processors: [
    processor(crashJob, async ({ id, payload, attempt, signal }) => {
      const entry = randomBytes(8).toString("hex");
      appendFileSync(entries, `${id} ${attempt} ${entry} ${process.pid}\n`);
      await run(payload, attempt, signal);
      return { attempt, entry };
    }),
  ],
});

process.on("SIGTERM", () => {
  engine.close().then(() => process.exit(0));
});
process.send?.("ready");
