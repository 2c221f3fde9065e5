/**
 * The server under attack, in a process of its own. Takes the store's address; sends its URL. Answers `measure` with the
 * longest block of its event loop since the last one, in milliseconds of CPU, and with its peak memory in bytes.
 */
import { openEngine } from "../../../src/open.ts";
import { createServer } from "../../../src/server/app.ts";
import { listen } from "../../../src/server/listen.ts";

const engine = await openEngine({ store: process.argv[2] as string, logger: silent() });
const listening = await listen(createServer(engine), { port: 0 });

let longest = 0;
let last = process.threadCpuUsage();

/** CPU of this thread between two turns of the event loop: other load on the machine does not count. */
function turn(): void {
  const { user, system } = process.threadCpuUsage(last);
  longest = Math.max(longest, (user + system) / 1_000);
  last = process.threadCpuUsage();
  setImmediate(turn);
}

function silent() {
  const ignore = () => {};
  return { debug: ignore, info: ignore, warn: ignore, error: ignore };
}

process.on("message", async (message: "measure" | "close") => {
  if (message === "measure") {
    process.send?.({ longest, peak: process.resourceUsage().maxRSS * 1_024 });
    longest = 0;
    return;
  }
  await listening.close();
  await engine.close();
  process.disconnect();
  process.exit();
});
turn();
process.send?.({ url: listening.url });
