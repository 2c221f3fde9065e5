/** Two ways out of a handler that are neither success nor failure: "ask me later" and "no retry can help". */
import { Discard, defineJob, processor, snooze } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const charge = defineJob({
  type: "card.charge",
  payload: z.object({ card: z.string(), cents: z.int().positive() }),
  timeouts: { total: "1h" },
  retry: { attempts: 3 },
});

await using test = await openTestEngine();
const { engine } = test;
const startedAt = test.now();
const say = (text: string) =>
  console.log(`${String((test.now() - startedAt) / 60_000).padStart(3)} min  ${text}`);

const bankOpensAt = startedAt + 25 * 60_000;

engine.work({
  processors: [
    processor(charge, ({ payload, attempt }) => {
      if (payload.card === "stolen") {
        // The job ends here: not retried, and never kept as a dead letter.
        throw new Discard("the card was reported stolen");
      }
      if (test.now() < bankOpensAt) {
        say(`attempt ${attempt}: the bank is closed`);
        return snooze({ after: "10m" }); // the attempt is given back, so it is still number 1 next time
      }
      say(`attempt ${attempt}: charged ${payload.cents} cents`);
      return undefined;
    }),
  ],
});
engine.on("job.snoozed", ({ dueAt = 0 }) => say(`snoozed for ${(dueAt - test.now()) / 60_000} min`));
engine.on("job.discarded", ({ error }) => say(`discarded: ${error?.message}`));
engine.on("job.completed", () => say("completed"));

await engine.enqueue(charge, { card: "good", cents: 4200 });
await test.advance("40m");

await engine.enqueue(charge, { card: "stolen", cents: 100 });
await test.settle();
