import { z } from "zod";
import { defineSaga } from "../core/saga/saga-definition.ts";
import { mail } from "./jobs.ts";

const Order = z.object({ orderId: z.string() });

/** An order waits for its payment: the payment revokes the timeout, or the timeout cancels the order. */
export const orderSaga = defineSaga({
  type: "order",
  state: z.object({ orderId: z.string(), isPaid: z.boolean() }),
  messages: { placed: Order, paid: Order },
  timeouts: { paymentLate: Order, review: Order },
  correlate: { placed: ({ orderId }) => orderId, paid: ({ orderId }) => orderId },
  startedBy: "placed",
  retention: "1h",
  start({ orderId }, saga) {
    saga.request("paymentLate", { after: "40s" }, { orderId }, { key: "late" });
    return { orderId, isPaid: false };
  },
  on: {
    paid(state, { orderId }, saga) {
      saga.revoke("late");
      saga.request("review", { after: "3m" }, { orderId });
      return { ...state, isPaid: true };
    },
  },
  onTimeout: {
    paymentLate(state, { orderId }, saga) {
      saga.enqueue(mail, { to: `${orderId}@example.org`, template: "order-cancelled" });
      return saga.complete(state);
    },
    review(state, { orderId }, saga) {
      saga.enqueue(mail, { to: `${orderId}@example.org`, template: "how-was-it" });
      return saga.complete(state);
    },
  },
});
