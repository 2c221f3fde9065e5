import { openEngine } from "../src/index.ts";

/** A process that starts, and tells of the first timeout that is delivered to it. */
const engine = await openEngine({ store: process.argv[2] ?? "memory:" });
engine.timeouts.serve("restart", () => {
  process.send?.("delivered", () => {
    process.disconnect();
    void engine.close({ drain: "0s" });
  });
});
