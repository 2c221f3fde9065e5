/**
 * Work that computes belongs into a sandbox: it blocks no event loop but its own. It pauses between its parts, so it
 * hears the signal; what is left over is cleaned up within grace, and the next attempt goes on from the checkpoint.
 */
import { openEngine, sandboxed } from "curfew";
import { countPrimes } from "./jobs.ts";

await using engine = await openEngine({ store: "memory:" });
engine.work({
  processors: [sandboxed(countPrimes, new URL("./count-primes.ts", import.meta.url), { memory: "256mb" })],
});

engine.on("job.timeout", ({ attempt, error }) => {
  console.log(`attempt ${attempt}: ${error?.message}${error?.forced ? ", killed" : ", stopped by itself"}`);
});

const job = await engine.enqueue(countPrimes, { below: 100_000, parts: 10 });
const result = await job.result({ within: "1m" });
console.log(`result: ${JSON.stringify(result)}`);
for (const { attempt, message } of (await job.logs()).lines)
  console.log(`log of attempt ${attempt}: ${message}`);
