import { openEngine, processor, silentLogger } from "../../../src/index.ts";
import { double, plain } from "./jobs.ts";

const [store = ""] = process.argv.slice(2);
const engine = await openEngine({ store, logger: silentLogger });
engine.work({
  queues: { default: { concurrency: 20 } },
  processors: [
    processor(double, async ({ payload }) => payload * 2),
    processor(plain, async ({ payload }) => payload * 2),
  ],
});
process.send?.("ready");
