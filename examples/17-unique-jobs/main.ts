/** Of several jobs that are the same only one is added: while the first one lives, or for a time. */
import { DuplicateJobError, defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

/** One at a time per customer, whatever else the payload says. */
const sync = defineJob({
  type: "customer.sync",
  payload: z.object({ customer: z.object({ id: z.int() }), because: z.string() }),
  unique: { payload: ["customer.id"] },
});

/** At most one an hour for the same address, also when the first has long been sent. */
const remind = defineJob({
  type: "mail.remind",
  payload: z.object({ to: z.string() }),
  unique: { period: "1h", onConflict: "reject" },
});

/** The last one wins, at the time that was set for the first. */
const digest = defineJob({
  type: "digest.send",
  payload: z.object({ items: z.int() }),
  unique: { payload: false, onConflict: "replace-except-schedule" },
});

await using test = await openTestEngine();
const { engine } = test;

const first = await engine.enqueue(sync, { customer: { id: 7 }, because: "signed up" });
const second = await engine.enqueue(sync, { customer: { id: 7 }, because: "changed address" });
console.log(`customer 7 again: duplicate ${second.duplicate}, same job ${second.id === first.id}`);
const other = await engine.enqueue(sync, { customer: { id: 8 }, because: "signed up" });
console.log(`customer 8: duplicate ${other.duplicate}`);

engine.work({ processors: [processor(remind, ({ payload }) => console.log(`reminded ${payload.to}`))] });
await engine.enqueue(remind, { to: "ada@example.org" });
await test.advance("59m");
try {
  await engine.enqueue(remind, { to: "ada@example.org" });
} catch (error) {
  if (error instanceof DuplicateJobError) console.log("refused: she was reminded within the hour");
}
await test.advance("1m");
await engine.enqueue(remind, { to: "ada@example.org" });
await test.settle();

const early = await engine.enqueue(digest, { items: 1 }, { delay: "1h" });
const late = await engine.enqueue(digest, { items: 2 });
for (const digest of [early, late]) {
  const job = await digest.load();
  console.log("digest:", job?.payload, job?.state);
}
