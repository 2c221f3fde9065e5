import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob } from "../job/job-definition.ts";
import { defineSaga } from "./saga-definition.ts";

const charge = defineJob({ type: "card.charge", payload: z.object({ orderId: z.string() }) });
const stock = defineSaga({
  type: "stock",
  state: z.object({ sku: z.string() }),
  messages: { asked: z.object({ sku: z.string() }) },
  correlate: { asked: ({ sku }) => sku },
  startedBy: "asked",
  start: ({ sku }, saga) => {
    saga.reply({ sku, left: 3 });
    return { sku };
  },
  on: {},
});
const order = defineSaga({
  type: "order",
  state: z.object({ orderId: z.string(), reminders: z.int() }),
  messages: {
    placed: z.object({ orderId: z.string() }),
    paid: z.object({ orderId: z.string(), receipt: z.string() }),
  },
  timeouts: { reminder: z.object({ nth: z.int() }), late: z.object({}) },
  correlate: { placed: (m) => m.orderId, paid: (m) => m.orderId },
  startedBy: "placed",
  start({ orderId }, saga) {
    saga.enqueue(charge, { orderId });
    saga.send(stock, "asked", { sku: "a" });
    saga.request("reminder", "24h", { nth: 1 });
    saga.request("late", { at: "17:00", days: 7, zone: "Europe/Berlin" }, {}, { key: "late" });
    return { orderId, reminders: 0 };
  },
  on: {
    paid(state, { receipt }, saga) {
      saga.revoke("late");
      saga.reply({ thanks: receipt });
      return saga.complete(state);
    },
  },
  onTimeout: {
    reminder(state, { nth }, saga) {
      if (nth < 3) saga.request("reminder", "24h", { nth: nth + 1 });
      return { ...state, reminders: nth };
    },
    late: (state, _payload, saga) => saga.complete(state),
  },
});
const placed = { message: "placed", payload: { orderId: "o-1" } } as const;

describe("saga.step: a saga without an engine", () => {
  it("tells what a start would commit", async () => {
    const started = await order.step(null, placed);
    expect(started).toMatchObject({
      outcome: "stepped",
      state: { orderId: "o-1", reminders: 0 },
      completed: false,
      enqueued: [{ type: "card.charge", payload: { orderId: "o-1" } }],
      sent: [{ saga: "stock", to: "a", name: "asked", payload: { sku: "a" } }],
      requested: [
        { name: "reminder", payload: { nth: 1 }, dueAt: Date.parse("2030-01-02T00:00:00Z") },
        { name: "late", key: "late", payload: {}, dueAt: Date.parse("2030-01-08T16:00:00Z") },
      ],
    });
  });

  it("goes on from a result, and knows what is pending", async () => {
    const started = await order.step(null, placed);
    const reminded = await order.step(started, { timeout: "reminder", payload: { nth: 1 } });
    expect(reminded).toMatchObject({ state: { reminders: 1 }, requested: [{ payload: { nth: 2 } }] });
    expect(reminded.pending.map(({ name }) => name)).toEqual(["late", "reminder"]);
    const paid = await order.step(reminded, { message: "paid", payload: { orderId: "o-1", receipt: "r" } });
    expect(paid).toMatchObject({ completed: true, pending: [], replied: [{ thanks: "r" }] });
    expect(paid.revoked.map(({ name }) => name)).toEqual(["late", "reminder"]);
    const after = await order.step(paid, { timeout: "late", payload: {} });
    expect(after).toMatchObject({ outcome: "ignored", completed: true });
  });

  it("goes on from a bare state too, where any timeout may fire", async () => {
    const state = { orderId: "o-1", reminders: 2 };
    const reminded = await order.step(state, { timeout: "reminder", payload: { nth: 3 } });
    expect(reminded).toMatchObject({ state: { reminders: 3 }, requested: [], revoked: [] });
    expect(state).toEqual({ orderId: "o-1", reminders: 2 });
  });

  it("moves its time where a test says so", async () => {
    const options = { now: "2026-03-28T16:00:00Z" };
    const started = await order.step(null, placed, options);
    expect(started.requested[1]?.dueAt).toBe(Date.parse("2026-04-04T15:00:00Z"));
  });

  it("gives the same ids each time, and never one twice", async () => {
    const [one, two] = [await order.step(null, placed), await order.step(null, placed)];
    expect(one.pending).toEqual(two.pending);
    const reminded = await order.step(one, { timeout: "reminder", payload: { nth: 1 } });
    const ids = reminded.pending.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("reports messages without a saga, and shows the id of the saga to handlers", async () => {
    const lost = await order.step(null, { message: "paid", payload: { orderId: "o-1", receipt: "r" } });
    expect(lost).toMatchObject({ outcome: "not-found", state: null, completed: false });
    expect(await stock.step(null, { message: "asked", payload: { sku: "a" } })).toMatchObject({
      replied: [{ sku: "a", left: 3 }],
    });
  });

  it("refuses what is not an event", async () => {
    const step = (event: unknown) => order.step(null, event as typeof placed);
    await expect(step({})).rejects.toMatchObject({ code: "invalid_option", field: "event" });
    await expect(step({ message: "payed" })).rejects.toMatchObject({ code: "unknown_message" });
    await expect(step({ timeout: "soon" })).rejects.toMatchObject({ code: "unknown_timeout" });
    await expect(step({ kind: "message" })).rejects.toMatchObject({ code: "unknown_option" });
    await expect(order.step(null, placed, { at: 1 } as object)).rejects.toMatchObject({
      code: "unknown_option",
    });
  });
});
