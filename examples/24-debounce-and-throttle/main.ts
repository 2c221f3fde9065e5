/** Many changes, one job: after a quiet time, or at most one per period. The last payload wins. */
import { defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

/** Two seconds after the last change of a customer, and at most ten after the first one. */
const sync = defineJob({
  type: "customer.sync",
  payload: z.object({ customer: z.int(), change: z.int() }),
  unique: { payload: ["customer"], debounce: { quiet: "2s", most: "10s" } },
});

/** The first at once, then at most one every ten seconds. */
const refresh = defineJob({
  type: "report.refresh",
  payload: z.object({ order: z.int() }),
  unique: { key: "report", throttle: "10s" },
});

await using test = await openTestEngine();
const { engine } = test;
const startedAt = test.now();
const say = (text: string) =>
  console.log(`${String((test.now() - startedAt) / 1_000).padStart(4)} s  ${text}`);

engine.work({
  processors: [
    processor(sync, ({ payload }) => say(`synced customer ${payload.customer}, change ${payload.change}`)),
    processor(refresh, ({ payload }) => say(`refreshed the report, order ${payload.order}`)),
  ],
});

// Customer 1 changes every second for 15 seconds; customer 2 once.
for (let second = 0; second < 15; second++) {
  await engine.enqueue(sync, { customer: 1, change: second });
  if (second === 3) await engine.enqueue(sync, { customer: 2, change: 0 });
  await engine.enqueue(refresh, { order: second });
  await test.advance("1s");
}
await test.advance("1m");
