/**
 * A handler in an endless loop is ended at its deadline. It runs in a child process, so the worker's own event loop
 * never waits for it; the error says where it hung, and the next attempt goes on from the last checkpoint.
 */
import { openEngine, sandboxed } from "curfew";
import { renderReport } from "./jobs.ts";

await using engine = await openEngine({ store: "memory:" });
engine.work({
  processors: [sandboxed(renderReport, new URL("./render-report.ts", import.meta.url), { memory: "256mb" })],
});

engine.on("job.timeout", ({ attempt, error }) => {
  console.log(`attempt ${attempt}: ${error?.message}${error?.forced ? ", killed" : ""}`);
  const [frame = ""] = /at \w+ \(\S+\)/.exec(error?.stack ?? "") ?? [];
  console.log(`  it hung ${frame.replace(/file:.*\//, "").replace(/:\d+\)$/, ")")}`);
});

const job = await engine.enqueue(renderReport, { pages: 5 });
const result = await job.result({ within: "1m" });
console.log(`result: ${JSON.stringify(result)}`);
for (const { attempt, message } of (await job.logs()).lines) {
  if (message.startsWith("begins")) console.log(`log of attempt ${attempt}: ${message}`);
}
