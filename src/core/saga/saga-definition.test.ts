import { describe, expect, it } from "vitest";
import { z } from "zod";
import { planOf } from "./saga.ts";
import { defineSaga } from "./saga-definition.ts";
import { attemptLimitOf } from "./step.ts";

const order = z.object({ orderId: z.string() });
const whole = {
  type: "order",
  state: z.object({ orderId: z.string() }),
  messages: { placed: order, paid: order },
  timeouts: { late: z.object({}) },
  correlate: { placed: (m: { orderId: string }) => m.orderId, paid: (m: { orderId: string }) => m.orderId },
  startedBy: "placed",
  start: (m: { orderId: string }) => m,
  on: { paid: (state: { orderId: string }) => state },
  onTimeout: { late: (state: { orderId: string }) => state },
} as const;

/** As plain JavaScript would call it. */
const define = (options: unknown) => defineSaga(options as typeof whole);

describe("SEMANTICS 7.1: an incomplete saga is refused where it is written", () => {
  it.each([
    [{ on: {} }, "missing_handler", "on.paid"],
    [{ onTimeout: {} }, "missing_handler", "onTimeout.late"],
    [{ onTimeout: undefined }, "missing_handler", "onTimeout.late"],
    [{ start: undefined }, "missing_handler", "start"],
    [{ version: 2 }, "missing_handler", "migrate"],
    [{ correlate: { placed: () => "1" } }, "missing_correlation", "correlate.paid"],
    [{ correlate: undefined }, "missing_correlation", "correlate.placed"],
    [{ startedBy: "ordered" }, "unknown_message", "startedBy"],
    [{ startedBy: undefined }, "unknown_message", "startedBy"],
    [{ startedBy: [] }, "invalid_option", "startedBy"],
    [{ startedBy: "toString" }, "unknown_message", "startedBy"],
    [{ on: { paid: whole.on.paid, payed: whole.on.paid } }, "unknown_message", "on.payed"],
    [{ onTimeout: { late: whole.onTimeout.late, later: 1 } }, "unknown_timeout", "onTimeout.later"],
    [{ on: { paid: "no" } }, "invalid_option", "on.paid"],
    [{ notFound: "no" }, "invalid_option", "notFound"],
    [{ type: "Order" }, "invalid_name", "type"],
    [{ messages: { "": order } }, "invalid_name", "messages"],
    [{ messages: { placed: {}, paid: order } }, "invalid_option", "messages.placed"],
    [{ messages: [order] }, "invalid_option", "messages"],
    [{ state: {} }, "invalid_option", "state"],
    [{ timeout: "30s" }, "unknown_option", "saga.timeout"],
    [{ attempt: 30 }, "invalid_duration", "attempt"],
    [{ attempt: { on: { payed: "1s" } } }, "unknown_message", "attempt.on.payed"],
    [{ attempt: { onTimeout: { late: "soon" } } }, "invalid_duration", "attempt.onTimeout.late"],
    [{ attempt: { start: "1s", stop: "1s" } }, "unknown_option", "attempt.stop"],
    [{ version: 0 }, "invalid_option", "version"],
    [{ retention: "forever" }, "invalid_duration", "retention"],
  ])("%j is refused as %s at %s", (spoiled, code, field) => {
    expect(() => define({ ...whole, ...spoiled })).toThrow(expect.objectContaining({ code, field }));
  });

  it("what is not a definition is refused where one is needed", () => {
    for (const value of [{}, null, "order", { ...define(whole) }]) {
      if (value && typeof value === "object" && Object.getOwnPropertySymbols(value).length > 0) continue;
      expect(() => planOf(value)).toThrow(expect.objectContaining({ code: "invalid_saga", field: "saga" }));
    }
    expect(planOf(define(whole)).type).toBe("order");
  });

  it("a definition cannot be changed afterwards", () => {
    const saga = define(whole);
    expect(Object.isFrozen(saga)).toBe(true);
    expect(Object.isFrozen(planOf(saga))).toBe(true);
    expect(Object.isFrozen(saga.messages)).toBe(true);
  });

  it("a message called like a method of objects has no handler by accident", () => {
    expect(() =>
      define({
        ...whole,
        messages: { placed: order, constructor: order },
        correlate: { placed: () => "1", constructor: () => "1" },
        on: {},
      }),
    ).toThrow(expect.objectContaining({ code: "missing_handler", field: "on.constructor" }));
  });
});

describe("SEMANTICS 7.9: how long a handler may run", () => {
  const event = (kind: "message" | "timeout", name: string) => {
    return { kind, name, id: "1", payload: {}, sender: null };
  };
  const limit = (attempt: unknown, kind: "message" | "timeout", name: string) =>
    attemptLimitOf(planOf(define({ ...whole, attempt })), event(kind, name), null);

  it("is 30 s by default", () => {
    expect(limit(undefined, "message", "placed")).toBe(30_000);
    expect(limit(undefined, "timeout", "late")).toBe(30_000);
  });

  it("is what was said for all, or by name", () => {
    expect(limit("5s", "message", "paid")).toBe(5_000);
    expect(limit({ seconds: 5 }, "timeout", "late")).toBe(5_000);
    expect(limit("none", "message", "paid")).toBeNull();
    const named = { standard: "1s", start: "2s", on: { paid: "none" }, onTimeout: { late: "4s" } };
    expect(limit(named, "message", "placed")).toBe(2_000);
    expect(limit(named, "message", "paid")).toBeNull();
    expect(limit(named, "timeout", "late")).toBe(4_000);
    expect(limit({ on: { paid: "3s" } }, "timeout", "late")).toBe(30_000);
  });
});
