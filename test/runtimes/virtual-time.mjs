/** Two hours of retries in a moment. */
import { constant, defineJob, processor, unchecked } from "curfew";
import { openTestEngine } from "curfew/testing";
import { check } from "./store.mjs";

const flaky = defineJob({
  type: "flaky",
  payload: unchecked(),
  result: unchecked(),
  retry: { attempts: 3, backoff: constant({ first: "1h", jitter: false }) },
});
const test = await openTestEngine({ startAt: "2026-03-29T00:30:00Z" });
test.engine.work({
  processors: [
    processor(flaky, ({ attempt }) => {
      if (attempt < 3) throw new Error("not yet");
      return attempt;
    }),
  ],
});
const job = await test.engine.enqueue(flaky, {});
await test.advance("2h");
await test.advance("1s");
check("state", [(await job.load()).state, (await job.load()).result], ["completed", 3]);
await test.close();
console.log("ok");
