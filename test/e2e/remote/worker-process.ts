/** A process that works for a server over HTTP, and has no store. */
import { setTimeout as wait } from "node:timers/promises";
import { openClient } from "../../../src/client/index.ts";
import { processor } from "../../../src/index.ts";
import { take } from "./jobs.ts";

const [url = "", what = "work"] = process.argv.slice(2);
const client = openClient({ url });
client.work({
  processors: [
    processor(take, async ({ payload, attempt, beat, signal }) => {
      process.send?.({ began: attempt });
      const beating = setInterval(beat, 100);
      await wait(payload.milliseconds, undefined, { signal }).finally(() => clearInterval(beating));
      return { pid: process.pid, attempt };
    }),
  ],
});
if (what === "close") {
  const job = await client.enqueue(take, { milliseconds: 10 });
  await job.result({ within: "1m" });
  await client.close();
  console.log("closed");
} else {
  process.once("SIGTERM", () => void client.close({ drain: "10s" }));
  process.send?.("ready");
}
