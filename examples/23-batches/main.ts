/** One insert for many jobs: each keeps its own deadline, retries and verdict. */
import { batchProcessor, constant, defineJob, snooze } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const addReading = defineJob({
  type: "reading.add",
  payload: z.object({ sensor: z.string(), value: z.number() }),
  timeouts: { attempt: "10s" },
  retry: { attempts: 2, backoff: constant({ first: "1s", jitter: false }) },
});

await using test = await openTestEngine();
const { engine } = test;
const startedAt = test.now();
const say = (text: string) => console.log(`${String(test.now() - startedAt).padStart(5)} ms  ${text}`);

engine.work({
  processors: [
    // The handler is called for 3 jobs, or for fewer 50 ms after the first of them.
    batchProcessor(addReading, { size: 3, within: "50ms" }, ({ jobs }) => {
      say(`one insert: ${jobs.map(({ payload }) => `${payload.sensor}=${payload.value}`).join(" ")}`);
      // One element per job: nothing for a success without a result, an Error, or a snooze.
      return jobs.map(({ payload, attempt }) => {
        if (payload.value < 0 && attempt === 1) return new Error(`${payload.sensor}: below zero`);
        if (payload.sensor === "new" && test.now() - startedAt < 5_000) return snooze({ after: "5s" });
        return undefined;
      });
    }),
  ],
});
engine.on("job.failed", ({ error }) => say(`failed: ${error?.message}`));
engine.on("job.snoozed", () => say("snoozed"));
engine.on("job.completed", () => say("completed"));

await engine.enqueueMany(addReading, [
  { sensor: "a", value: 1 },
  { sensor: "b", value: -2 },
  { sensor: "new", value: 3 },
  { sensor: "c", value: 4 },
]);
await test.advance("10s");
