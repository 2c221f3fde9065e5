/** The server of `bench/server.ts`, in a process of its own. Takes the store's address; prints the URL as JSON. */
import { openEngine } from "../src/open.ts";
import { createServer } from "../src/server/app.ts";
import { listen } from "../src/server/listen.ts";

const engine = await openEngine({ store: process.argv[2] as string });
const listening = await listen(createServer(engine), { port: 0 });
let usage = process.cpuUsage();
process.on("message", (message) => {
  if (message === "usage") {
    const { user, system } = process.cpuUsage(usage);
    usage = process.cpuUsage();
    process.send?.({ cpu: user + system });
  } else {
    void listening
      .close()
      .then(() => engine.close())
      .then(() => process.disconnect());
  }
});
process.send?.({ url: listening.url });
