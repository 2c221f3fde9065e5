/**
 * What failed for good is kept as a dead letter: looked at, run again once the cause is mended, or deleted. Actions on
 * many jobs name them by a query, can be previewed, and say what they did.
 */
import { defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const chargeCard = defineJob({
  type: "card.charge",
  payload: z.object({ card: z.string(), cents: z.int() }),
  timeouts: { total: "1h" },
  retry: { attempts: 1, onExhausted: "dead-letter" },
});

class BankClosed extends Error {
  override readonly name = "BankClosed";
  readonly code = "bank_closed";
}

await using test = await openTestEngine();
const { engine } = test;
let isOpen = false;
engine.work({
  processors: [
    processor(chargeCard, ({ payload }) => {
      if (payload.card === "stolen") throw new Error("this card was reported");
      if (!isOpen) throw new BankClosed("come back at nine");
    }),
  ],
});

for (const card of ["anna", "ben", "stolen", "cleo", "dora"])
  await engine.enqueue(chargeCard, { card, cents: 4_200 });
await test.advance("2h");

// Look: newest first, by what went wrong, page by page.
console.log(`${await engine.deadLetters.count()} dead letters`);
const { jobs } = await engine.deadLetters.list({ errorCode: "bank_closed" }, { newestFirst: true, limit: 2 });
for (const { payload, errors } of jobs) console.log(" ", payload, errors.at(-1)?.message);

// Preview, then do. Their `total` of an hour is over; a manual retry counts it from now.
isOpen = true;
const query = { errorType: "BankClosed" };
console.log(
  "preview",
  await engine.deadLetters.retryAll(query, { dryRun: true }).then(({ matched }) => matched),
);
const { done, skipped, failed } = await engine.deadLetters.retryAll(query, {
  onProgress: ({ done, matched }) => console.log(`  ${done} of ${matched} run again`),
});
console.log({ done, skipped, failed });
await test.advance("1m");
console.log(`${engine.counters().completed} charged, ${await engine.deadLetters.count()} dead letter left`);

// One by one works too.
const [left] = (await engine.deadLetters.list()).jobs;
if (left) await engine.deadLetters.delete(left.id);
console.log(`${await engine.deadLetters.count()} left`);

// The same for jobs that wait: here, everything of one type that was enqueued and not started.
for (let n = 0; n < 3; n++) await engine.enqueue(chargeCard, { card: "eve", cents: n }, { delay: "30m" });
const cancelled = await engine.bulk.cancel({ type: "card.charge", state: "scheduled" });
console.log(`${cancelled.done} cancelled, ${await engine.bulk.count({ isLive: true })} jobs wait or run`);
