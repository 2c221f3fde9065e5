/**
 * The server of `bench/dashboard.ts`, in a process of its own. Takes the store's address; sends the URL. It answers how
 * much CPU it has used since it was last asked. With a rate it enqueues and runs as many jobs a second, until rate 0.
 */
import { defineJob, openEngine, processor, silentLogger } from "../src/index.ts";
import { createServer } from "../src/server/app.ts";
import { listen } from "../src/server/listen.ts";

/** Jobs come in batches, this many a second. */
const BATCHES = 10;

const busy = defineJob({ type: "bench.busy", queue: "busy" });
const engine = await openEngine({ store: process.argv[2] as string, logger: silentLogger });
const server = createServer(engine);
const listening = await listen(server, { port: 0 });
engine.work({ queues: { busy: { concurrency: 200 } }, processors: [processor(busy, () => {})] });

let usage = process.cpuUsage();
let ended = 0;
let timer: NodeJS.Timeout | undefined;
engine.on("job.completed", () => {
  ended += 1;
});
process.on("message", async (message: "usage" | "close" | { readonly rate: number }) => {
  if (message === "usage") {
    const { user, system } = process.cpuUsage(usage);
    usage = process.cpuUsage();
    process.send?.({ cpu: user + system, ended });
    ended = 0;
  } else if (message === "close") {
    clearInterval(timer);
    await listening.close();
    await engine.close();
    process.disconnect();
  } else {
    clearInterval(timer);
    const batch = Array(Math.ceil(message.rate / BATCHES)).fill(null);
    if (message.rate > 0) timer = setInterval(() => void engine.enqueueMany(busy, batch), 1_000 / BATCHES);
  }
});
process.send?.({ url: listening.url });
