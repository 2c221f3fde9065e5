import { defineJob, openEngine, silentLogger } from "../../../src/index.ts";

/** One process of crons.test.ts: it puts the cron, as a deployed process does, and lives until it is killed. */
const [address = ""] = process.argv.slice(2);

const engine = await openEngine({ store: address, logger: silentLogger });
await engine.crons.put("every second", {
  cron: "* * * * * *",
  job: defineJob({ type: "test.tick" }),
  missed: { all: "10m" },
});
process.send?.("ready");
// The engine's own loops keep no process alive; the channel to the parent does.
process.on("disconnect", () => process.exit(0));
