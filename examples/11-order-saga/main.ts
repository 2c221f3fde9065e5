/**
 * An order waits for its payment: a reminder each day, cancelled at close of business in Berlin after a week, and all of
 * it taken back when the payment arrives. It runs on virtual time, so eight days pass in a moment.
 */
import { defineJob, defineSaga, explainWhen, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const Order = z.object({ orderId: z.string(), cents: z.int() });
const mail = defineJob({
  type: "mail.send",
  payload: z.object({ orderId: z.string(), template: z.string() }),
});
const CLOSE_OF_BUSINESS = { at: "17:00", days: 7, zone: "Europe/Berlin" } as const;

const orderSaga = defineSaga({
  type: "order",
  state: z.object({ orderId: z.string(), reminders: z.int() }),
  messages: { placed: Order, paid: z.object({ orderId: z.string() }) },
  timeouts: { reminder: z.object({ nth: z.int() }), paymentLate: Order },
  correlate: { placed: (m) => m.orderId, paid: (m) => m.orderId },
  startedBy: "placed",
  start(order, saga) {
    saga.request("reminder", { after: "72h" }, { nth: 1 });
    saga.request("paymentLate", CLOSE_OF_BUSINESS, order, { key: "late" }); // the message itself is the payload
    return { orderId: order.orderId, reminders: 0 };
  },
  on: {
    paid(state, _payment, saga) {
      const answer = saga.revoke("late");
      saga.reply({ thanks: true, paymentLate: answer });
      return saga.complete(state);
    },
  },
  onTimeout: {
    reminder(state, { nth }, saga) {
      saga.enqueue(mail, { orderId: state.orderId, template: `reminder-${nth}` });
      saga.request("reminder", { after: "72h" }, { nth: nth + 1 });
      return { ...state, reminders: nth };
    },
    paymentLate(state, { cents }, saga) {
      saga.enqueue(mail, { orderId: state.orderId, template: `cancelled-${cents}` });
      return saga.complete(state);
    },
  },
});

await using test = await openTestEngine({ startAt: "2026-03-26T09:00:00Z" });
const { engine } = test;
const clock = () => new Date(test.now()).toISOString().slice(0, 16);
engine.work({
  processors: [
    processor(mail, async ({ payload }) => {
      console.log(`${clock()}  mail to ${payload.orderId}: ${payload.template}`);
    }),
  ],
});
engine.host([orderSaga]);
engine.on("saga.completed", ({ saga, event }) => console.log(`${clock()}  ${saga} ends by ${event.name}`));

console.log(explainWhen(CLOSE_OF_BUSINESS, { now: new Date(test.now()) }).text);
await engine.send(orderSaga, "placed", { orderId: "o-1", cents: 4200 });
await engine.send(orderSaga, "placed", { orderId: "o-2", cents: 990 });
await test.advance("4d");

const payment = await engine.send(orderSaga, "paid", { orderId: "o-1" });
await test.advance("1m");
console.log(`${clock()}  o-1 hears`, await payment.reply({ within: "1s" }));
await test.advance("8d");

const { handled, completed, revoked, cancelled, ignored } = engine.counters().sagas;
console.log({ handled, completed, revoked, cancelled, ignored });
