/**
 * A test of a 2-hour total timeout that takes milliseconds. The code under test is the real engine, worker and retry
 * policy; only the clock is moved by hand. The two functions would be the bodies of tests in any runner.
 */
import assert from "node:assert/strict";
import { constant, defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";

// The code under test: an import that may take 20 minutes per attempt, and 2 hours in all.
const importCatalog = defineJob({
  type: "catalog.import",
  timeouts: { attempt: "20m", total: "2h", grace: "0s" },
  retry: { attempts: 20, backoff: constant({ first: "1m", jitter: false }), retryFit: "any" },
});

async function givesUpAfterTwoHours(): Promise<void> {
  await using test = await openTestEngine();
  const { engine } = test;
  let attempts = 0;
  const hangs = processor(importCatalog, () => {
    attempts += 1;
    return new Promise<void>(() => {}); // never answers
  });
  engine.work({ processors: [hangs] });

  const job = await engine.enqueue(importCatalog);
  await test.advance({ hours: 1, minutes: 59, seconds: 59 });
  const almost = await job.load();
  assert.equal(almost?.state, "active", "one second before, the last attempt still runs");

  await test.advance("2s");
  const ended = await job.load();
  assert.equal(ended?.state, "discarded");
  assert.equal(ended?.errors.at(-1)?.message, "Timed out (deadline exceeded, 2h total budget)");
  const lived = (ended?.finishedAt ?? 0) - (ended?.createdAt ?? 0);
  assert.ok(lived >= 7_200_000 && lived < 7_200_010, "never early, and at most some milliseconds late");
  assert.equal(attempts, 6); // five of 20 minutes, one minute between them, and one that was cut to 15
}

async function survivesOneSlowAttempt(): Promise<void> {
  await using test = await openTestEngine();
  const { engine } = test;
  engine.work({
    processors: [
      processor(importCatalog, ({ attempt }) =>
        attempt === 1 ? new Promise<void>(() => {}) : Promise.resolve(),
      ),
    ],
  });
  const job = await engine.enqueue(importCatalog);
  await test.advance("22m"); // 20 minutes of attempt 1, one of backoff, then attempt 2
  const ended = await job.load();
  assert.equal(ended?.state, "completed");
  assert.equal(ended?.attempt, 2);
  assert.equal(ended?.errors[0]?.message, "Timed out after 20m");
}

const began = performance.now();
for (const check of [givesUpAfterTwoHours, survivesOneSlowAttempt]) {
  await check();
  console.log(`ok  ${check.name}`);
}
const took = performance.now() - began;
console.log(took < 60_000 ? "2 h 22 min passed in under a minute" : `too slow: ${took} ms`);
