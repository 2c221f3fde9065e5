/** A process that opens an engine and works, and either goes on until SIGTERM, closes at once, or closes when it is told to. */
import { defineJob, openEngine, processor, silentLogger } from "../../../src/index.ts";

const [store = "", what] = process.argv.slice(2);
const engine = await openEngine({ store, logger: silentLogger });
const job = defineJob({ type: "life" });
engine.work({ processors: [processor(job, () => {})] });
await (await engine.enqueue(job)).result();
if (what === "close") {
  await engine.close();
  console.log("closed");
} else if (what === "close when told") {
  process.send?.("ready");
  process.once("message", async () => {
    await engine.close({ drain: "0s" });
    const tell = () => process.send?.(process.getActiveResourcesInfo(), () => process.disconnect());
    // What was destroyed is gone after the first one.
    setImmediate(() => setImmediate(tell));
  });
} else {
  process.once("SIGTERM", () => void engine.close());
  process.send?.("ready");
}
