/**
 * Three ways to hold work back: at most two calls to a bank at once, orders of one customer strictly one after the
 * other, and at most three mails in any second. The jobs wait at the limits of their keys; nothing else waits with them.
 */
import { constant, defineJob, processor, unchecked } from "curfew";
import { openTestEngine } from "curfew/testing";

const { engine, advance, sleep, now } = await openTestEngine();
const startedAt = now();
const seconds = () => `${((now() - startedAt) / 1_000).toFixed(1)} s`;

const charge = defineJob({
  type: "card.charge",
  payload: unchecked<string>(),
  limit: { key: "bank", concurrency: 2 },
});
const order = defineJob({
  type: "order.step",
  payload: unchecked<{ customer: string; step: number }>(),
  limit: { key: ({ customer }) => `orders of ${customer}`, concurrency: 1, strict: true },
  retry: { backoff: constant({ first: "1s", jitter: false }) },
});
const mail = defineJob({
  type: "mail.send",
  payload: unchecked<number>(),
  queue: "mail",
  limit: { key: "mail", rate: { limit: 3, per: "1s" } },
});

engine.work({
  queues: { default: { concurrency: 10 }, mail: { concurrency: 10 } },
  processors: [
    processor(charge, async ({ payload }) => {
      console.log(`${seconds()}  charge ${payload}`);
      await sleep("1s");
    }),
    processor(order, async ({ payload, attempt }) => {
      console.log(`${seconds()}  ${payload.customer}: step ${payload.step}, attempt ${attempt}`);
      if (payload.step === 1 && attempt === 1) throw new Error("not yet");
      await sleep("100ms");
    }),
    processor(mail, ({ payload }) => console.log(`${seconds()}  mail ${payload}`)),
  ],
});

console.log("two at once:");
await engine.enqueueMany(charge, ["a", "b", "c", "d"]);
console.log(`waiting at the gate: ${(await engine.limits.get("bank")).waiting}`);
await advance("3s");

console.log("one after the other, also when the first has to be tried again:");
for (const step of [1, 2]) await engine.enqueue(order, { customer: "ann", step });
await advance("4s");

console.log("three in any second:");
await engine.enqueueMany(mail, [1, 2, 3, 4, 5, 6, 7]);
await advance("3s");

console.log("an operator takes the brake off:");
await engine.limits.put("mail", { rate: "none" });
await engine.enqueueMany(mail, [8, 9, 10, 11]);
await advance("1ms");

console.log("a paused queue takes jobs in and hands none out:");
await engine.queues.pause("mail");
await engine.enqueue(mail, 12);
await advance("1s");
const { depth, pausedAt } = await engine.queues.describe("mail");
console.log(`waiting ${depth.available}, paused ${pausedAt !== null}`);
console.log(`purged ${await engine.queues.purge("mail")}`);

const closing = engine.close();
await advance("30s");
await closing;
