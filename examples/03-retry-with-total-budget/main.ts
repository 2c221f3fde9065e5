/**
 * Retries inside a budget. Each attempt may take 20 s, up to ten are allowed, and 90 s after it was enqueued the
 * job is over, whatever happens: a retry that cannot fit is not even begun.
 */
import { defineJob, exponential, processor } from "curfew";
import { openTestEngine } from "curfew/testing";

const fetchRates = defineJob({
  type: "rates.fetch",
  timeouts: { attempt: "20s", total: "90s" },
  retry: {
    attempts: 10,
    backoff: exponential({ first: "5s", max: "1m", jitter: false }), // 5 s, 10 s, 20 s, 40 s …
  },
});

await using test = await openTestEngine();
const { engine } = test;
let startedAt = test.now();
const say = (text: string) =>
  console.log(`${String((test.now() - startedAt) / 1000).padStart(4)} s  ${text}`);

engine.work({
  processors: [
    processor(fetchRates, ({ attempt, remaining }) => {
      say(`attempt ${attempt} may take ${Math.round(remaining() / 1000)} s`);
      throw new Error("503 Service Unavailable");
    }),
  ],
});
engine.on("job.retrying", ({ dueAt = 0 }) =>
  say(`  failed; next attempt in ${(dueAt - test.now()) / 1000} s`),
);
engine.on("job.discarded", ({ error }) => {
  say(`  discarded: ${error?.message}`);
  if (error?.predicted) say("  (decided early: what would come next no longer fits into the budget)");
});

const job = await engine.enqueue(fetchRates);
await test.advance("5m");

// The reason why the job ended is the last error; what each attempt failed of is kept before it.
const ended = await job.load();
console.log("\nits history");
for (const { attempt, message } of ended?.errors ?? []) console.log(`  attempt ${attempt}: ${message}`);

// retryFit: "any" starts as long as any budget is left, with an attempt cut to what remains.
console.log("\nthe same with retryFit: any");
startedAt = test.now();
await engine.enqueue(fetchRates, undefined, { retry: { retryFit: "any" } });
await test.advance("5m");
