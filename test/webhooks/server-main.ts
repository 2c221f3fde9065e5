/** A server on a store, with a worker for its jobs. Its arguments: the address of the store. */
import { defineJob, openEngine, processor, silentLogger } from "../../src/index.ts";
import { createServer, listen } from "../../src/server/index.ts";

const engine = await openEngine({
  store: process.argv[2] as string,
  logger: silentLogger,
  webhooks: { allow: ["127.0.0.1"] },
});
const types = ["lane.job", "lane.rare"].map((type) => defineJob({ type, retention: "1d" }));
engine.work({ processors: types.map((type) => processor(type, () => {})) });
const server = createServer(engine, { logger: silentLogger });
const listening = await listen(server, { port: 0 });
process.send?.({ url: listening.url });
process.on("message", async (asked) => {
  if (asked !== "usage") return;
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: (user + system) / 1_000 });
});
process.on("disconnect", () => process.exit());
