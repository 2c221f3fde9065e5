/**
 * The server of `bench/server.ts`, in a process of its own. Takes the store's address; sends the URL. It answers how much
 * CPU it has used since it was last asked, and makes round trips of its own without a socket if told for how long.
 */
import { silentLogger } from "../src/index.ts";
import { onThisMachine, openEngine, openStore } from "../src/open.ts";
import { createServer } from "../src/server/app.ts";
import { listen } from "../src/server/listen.ts";
import { countedStore, countTransactions, type StoreCalls } from "./counted-store.ts";
import { roundTrips } from "./round-trips.ts";
import { RouterLine } from "./router-line.ts";

const calls: StoreCalls = {};
countTransactions(calls);
const opened = await openStore(process.argv[2] as string, onThisMachine());
const engine = await openEngine({ store: countedStore(opened, calls), logger: silentLogger });
const server = createServer(engine);
const listening = await listen(server, { port: 0 });
let usage = process.cpuUsage();
process.on("message", async (message: "usage" | "close" | { readonly seconds: number }) => {
  if (message === "usage") {
    const { user, system } = process.cpuUsage(usage);
    usage = process.cpuUsage();
    process.send?.({ cpu: user + system, calls });
    for (const name of Object.keys(calls)) calls[name] = 0;
  } else if (message === "close") {
    await listening.close();
    await engine.close();
    process.disconnect();
  } else {
    const until = performance.now() + message.seconds * 1_000;
    process.send?.({ count: await roundTrips(new RouterLine(server), "router", until) });
  }
});
process.send?.({ url: listening.url });
