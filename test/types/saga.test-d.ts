import { Temporal } from "temporal-polyfill";
import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { defineJob, unchecked } from "../../src/core/job/job-definition.ts";
import { defineSaga } from "../../src/core/saga/saga-definition.ts";
import type { Engine } from "../../src/engine/engine.ts";

const Order = z.object({ orderId: z.uuid(), cents: z.int() });
const Payment = z.object({ orderId: z.uuid(), receipt: z.string() });
const chargeCard = defineJob({
  type: "card.charge",
  payload: z.object({ orderId: z.uuid(), cents: z.int() }),
});

const orderSaga = defineSaga({
  type: "order",
  state: z.object({ orderId: z.uuid(), paid: z.boolean() }),
  messages: { placed: Order, paid: Payment },
  timeouts: { reminder: z.object({ nth: z.int() }), paymentLate: z.object({}) },
  correlate: { placed: (m) => m.orderId, paid: (m) => m.orderId },
  startedBy: "placed",
  start(order, saga) {
    expectTypeOf(order).toEqualTypeOf<{ orderId: string; cents: number }>();
    saga.enqueue(chargeCard, { orderId: order.orderId, cents: order.cents });
    saga.request("reminder", { after: "24h" }, { nth: 1 });
    saga.request("paymentLate", { at: "17:00", days: 7, zone: "Europe/Berlin" }, {}, { key: "late" });
    return { orderId: order.orderId, paid: false };
  },
  on: {
    paid: (state, payment, saga) => {
      expectTypeOf(state).toEqualTypeOf<{ orderId: string; paid: boolean }>();
      expectTypeOf(payment.receipt).toEqualTypeOf<string>();
      expectTypeOf(saga.revoke("late")).toEqualTypeOf<"revoked" | "not-pending">();
      return saga.complete(state);
    },
  },
  onTimeout: {
    reminder(state, { nth }, saga) {
      expectTypeOf(nth).toEqualTypeOf<number>();
      saga.request("reminder", "24h", { nth: nth + 1 });
      return state;
    },
    paymentLate: async (s, _p, saga) => saga.complete(s),
  },
});

/** A definition that is complete, to be spoiled in one place at a time. */
const whole = {
  type: "a",
  state: z.object({ id: z.string() }),
  messages: { placed: Order, paid: Payment },
  timeouts: { late: z.object({ nth: z.int() }) },
  startedBy: "placed",
} as const;
const id = (message: { orderId: string }) => message.orderId;
type State = { id: string };
const begin = (order: { orderId: string }): State => ({ id: order.orderId });
const stay = (state: State): State => state;

describe("a saga", () => {
  it("carries the types of its state, messages and timeouts", () => {
    expectTypeOf(orderSaga.messages.paid).toEqualTypeOf<typeof Payment>();
    expectTypeOf(orderSaga.timeouts.reminder).toExtend<z.ZodType<{ nth: number }>>();
    expectTypeOf(orderSaga.step(null, { message: "placed", payload: { orderId: "o", cents: 1 } }))
      .resolves.toHaveProperty("state")
      .toEqualTypeOf<{ orderId: string; paid: boolean }>();
  });

  it("needs no timeouts, and may have many starters", () => {
    defineSaga({
      type: "counter",
      state: z.object({ count: z.int() }),
      messages: { added: z.object({ id: z.string() }), imported: z.object({ id: z.string(), of: z.int() }) },
      correlate: { added: (m) => m.id, imported: (m) => m.id },
      startedBy: ["added", "imported"],
      start: (message) => ({ count: "of" in message ? message.of : 1 }),
      on: { added: (state) => ({ count: state.count + 1 }) },
    });
  });

  it("takes any Standard Schema, and schemas that transform", () => {
    defineSaga({
      type: "parsed",
      state: z.object({ since: z.string().transform((text) => new Date(text)) }),
      messages: { began: unchecked<{ key: number }>() },
      correlate: { began: ({ key }) => key },
      startedBy: "began",
      start: () => ({ since: "2030-01-01T00:00:00Z" }),
      on: {
        began(state) {
          expectTypeOf(state.since).toEqualTypeOf<Date>();
          return { since: state.since.toISOString() };
        },
      },
    });
  });

  it("is completed by whatever state", () => {
    defineSaga({
      ...whole,
      correlate: { placed: id, paid: id },
      start: (order, saga) => saga.complete(begin(order)),
      on: { paid: async (state, _payment, saga) => saga.complete(stay(state)) },
      onTimeout: { late: stay },
      attempt: { standard: "10s", start: "none", on: { paid: "5s" }, onTimeout: { late: { minutes: 1 } } },
      identify: (state) => state.id,
      notFound: async (message, saga) => {
        if (message.name === "paid") expectTypeOf(message.payload.receipt).toEqualTypeOf<string>();
        saga.enqueue(chargeCard, { orderId: "o", cents: 1 });
      },
    });
  });
});

describe("SEMANTICS 7.1: an incomplete saga does not compile", () => {
  const begun = { ...whole, start: begin };
  const correlate = { placed: id, paid: id };

  it("a message without a handler", () => {
    const timed = { ...begun, correlate, onTimeout: { late: stay } };
    // @ts-expect-error there is no handler for paid
    defineSaga({ ...timed, on: {} });
    // @ts-expect-error there are no handlers at all
    defineSaga(timed);
  });

  it("a timeout without a handler", () => {
    const told = { ...begun, correlate, on: { paid: stay } };
    // @ts-expect-error there is no handler for late
    defineSaga({ ...told, onTimeout: {} });
    // @ts-expect-error there are no handlers for timeouts at all
    defineSaga(told);
  });

  it("a message without a correlation", () => {
    const handled = { ...begun, on: { paid: stay }, onTimeout: { late: stay } };
    // @ts-expect-error nothing says which saga a payment belongs to
    defineSaga({ ...handled, correlate: { placed: id } });
    // @ts-expect-error nothing says which saga any message belongs to
    defineSaga(handled);
  });

  it("a starter that is not a message, and no starter", () => {
    const rest = { correlate: { placed: id, paid: id }, start: begin, onTimeout: { late: stay } };
    // @ts-expect-error there is no message "ordered"
    defineSaga({ ...whole, ...rest, startedBy: "ordered", on: { paid: stay } });
    const { startedBy: _none, ...unstarted } = whole;
    // @ts-expect-error nobody starts it
    defineSaga({ ...unstarted, ...rest, on: { paid: stay } });
  });

  it("handlers for what is not declared", () => {
    const rest = { correlate: { placed: id, paid: id }, start: begin };
    // @ts-expect-error there is no message "payed"
    defineSaga({ ...whole, ...rest, on: { paid: stay, payed: stay }, onTimeout: { late: stay } });
    // @ts-expect-error there is no timeout "later"
    defineSaga({ ...whole, ...rest, on: { paid: stay }, onTimeout: { late: stay, later: stay } });
    // @ts-expect-error there is no option "onMessage"
    defineSaga({ ...whole, ...rest, on: { paid: stay }, onTimeout: { late: stay }, onMessage: {} });
  });

  it("handlers that return nothing, or another state", () => {
    const rest = { correlate: { placed: id, paid: id }, start: begin, onTimeout: { late: stay } };
    // @ts-expect-error it returns nothing
    defineSaga({ ...whole, ...rest, on: { paid: () => {} } });
    // @ts-expect-error it returns a promise of nothing
    defineSaga({ ...whole, ...rest, on: { paid: async () => {} } });
    // @ts-expect-error the id is missing
    defineSaga({ ...whole, ...rest, on: { paid: () => ({ paid: true }) } });
    // @ts-expect-error the id is a text
    defineSaga({ ...whole, ...rest, on: { paid: (_s, _p, saga) => saga.complete({ id: 1 }) } });
  });

  it("limits without a unit, for what is not declared, and migrations to another shape", () => {
    const rest = {
      correlate: { placed: id, paid: id },
      start: begin,
      on: { paid: stay },
      onTimeout: { late: stay },
    };
    // @ts-expect-error a bare number does not say its unit
    defineSaga({ ...whole, ...rest, attempt: 30 });
    // @ts-expect-error there is no message "payed"
    defineSaga({ ...whole, ...rest, attempt: { on: { payed: "1s" } } });
    // @ts-expect-error the id is missing
    defineSaga({ ...whole, ...rest, version: 2, migrate: () => ({ paid: true }) });
    // @ts-expect-error a correlation is a text or a number
    defineSaga({ ...whole, ...rest, correlate: { placed: id, paid: () => new Date(0) } });
  });
});

describe("SEMANTICS 7.1, 7.2: misuse inside a handler does not compile", () => {
  const spoil = (use: (saga: Parameters<Parameters<typeof defineUses>[0]>[1]) => void) => use;
  function defineUses(start: (message: { orderId: string }, saga: SagaOf) => State) {
    return start;
  }
  type SagaOf = import("../../src/core/saga/saga.ts").SagaContext<
    typeof whole.messages,
    { late: typeof whole.timeouts.late; free: z.ZodObject<{ note: z.ZodOptional<z.ZodString> }> }
  >;

  it("timeouts", () => {
    spoil((saga) => {
      saga.request("late", "1h", { nth: 1 });
      saga.request("late", new Date(0), { nth: 1 }, { key: "k" });
      saga.request("late", Temporal.Instant.from("2030-01-01T00:00Z"), { nth: 1 });
      saga.request("late", { at: "17:00", date: "2030-01-31", zone: "UTC", gap: "reject" }, { nth: 1 });
      saga.request("free", { after: { hours: 1 } });
      saga.request("free", "1h", {}, { key: "k" });
      // @ts-expect-error there is no timeout "later"
      saga.request("later", "1h", { nth: 1 });
      // @ts-expect-error nth is a number
      saga.request("late", "1h", { nth: "1" });
      // @ts-expect-error nth is missing
      saga.request("late", "1h", {});
      // @ts-expect-error the payload is missing
      saga.request("late", "1h");
      // @ts-expect-error there is no such field
      saga.request("late", "1h", { nth: 1, more: 1 });
      // @ts-expect-error a bare number does not say its unit
      saga.request("late", 1_000, { nth: 1 });
      // @ts-expect-error a wall clock needs a zone
      saga.request("late", { at: "17:00" }, { nth: 1 });
      // @ts-expect-error there is no such policy
      saga.request("late", { at: "17:00", zone: "UTC", gap: "skip" }, { nth: 1 });
      // @ts-expect-error a key is a text
      saga.request("late", "1h", { nth: 1 }, { key: 1 });
    });
  });

  it("jobs, messages and replies", () => {
    spoil((saga) => {
      saga.send(orderSaga, "placed", { orderId: "o", cents: 1 }, { replyAs: "paid" });
      saga.reply({ ok: true }, { to: "starter" });
      // @ts-expect-error cents is missing
      saga.enqueue(chargeCard, { orderId: "o" });
      // @ts-expect-error there is no such message
      saga.send(orderSaga, "cancelled", { orderId: "o" });
      // @ts-expect-error cents is a number
      saga.send(orderSaga, "placed", { orderId: "o", cents: "1" });
      // @ts-expect-error this saga has no such message
      saga.send(orderSaga, "placed", { orderId: "o", cents: 1 }, { replyAs: "shipped" });
      // @ts-expect-error a date is not JSON
      saga.reply({ at: new Date(0) });
      // @ts-expect-error the id of a saga is fixed
      saga.id = "other";
    });
  });
});

describe("a step in a test", () => {
  it("takes only events of the saga", () => {
    const state = { orderId: "o", paid: false };
    orderSaga.step(state, { message: "paid", payload: { orderId: "o", receipt: "r" } });
    orderSaga.step(state, { timeout: "reminder", payload: { nth: 1 } }, { now: "2030-01-01T00:00:00Z" });
    // @ts-expect-error there is no message "payed"
    orderSaga.step(state, { message: "payed", payload: { orderId: "o", receipt: "r" } });
    // @ts-expect-error the receipt is missing
    orderSaga.step(state, { message: "paid", payload: { orderId: "o" } });
    // @ts-expect-error there is no timeout "reminded"
    orderSaga.step(state, { timeout: "reminded", payload: { nth: 1 } });
    // @ts-expect-error nth is a number
    orderSaga.step(state, { timeout: "reminder", payload: { nth: "1" } });
    // @ts-expect-error either a message or a timeout
    orderSaga.step(state, { message: "paid", timeout: "reminder", payload: { nth: 1 } });
    // @ts-expect-error paid is missing from the state
    orderSaga.step({ orderId: "o" }, { timeout: "reminder", payload: { nth: 1 } });
  });
});

describe("an engine", () => {
  const engine = {} as Engine;

  it("takes messages of the saga, and knows its state", () => {
    engine.host([orderSaga]);
    expectTypeOf(
      engine.send(orderSaga, "paid", { orderId: "o", receipt: "r" }, { id: "p-1" }),
    ).resolves.toHaveProperty("reply");
    expectTypeOf(engine.saga(orderSaga, "o").load()).resolves.toExtend<{ state: { paid: boolean } } | null>();
    expectTypeOf(engine.sagas(orderSaga)).resolves.toExtend<readonly { state: { orderId: string } }[]>();
  });

  it("refuses others", () => {
    // @ts-expect-error there is no message "payed"
    engine.send(orderSaga, "payed", { orderId: "o", receipt: "r" });
    // @ts-expect-error the receipt is missing
    engine.send(orderSaga, "paid", { orderId: "o" });
    // @ts-expect-error a timeout is not a message
    engine.send(orderSaga, "reminder", { nth: 1 });
    // @ts-expect-error the payload is missing
    engine.send(orderSaga, "paid");
    // @ts-expect-error a job is not a saga
    engine.host([chargeCard]);
    // @ts-expect-error there is no such option
    engine.send(orderSaga, "paid", { orderId: "o", receipt: "r" }, { key: "p-1" });
  });
});
