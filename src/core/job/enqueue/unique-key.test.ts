import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sha256 } from "../../../engine/runtime/sha256.ts";
import { canonicalJson } from "../../canonical-json.ts";
import type { Json } from "../../schema.ts";
import { JOB_STATES } from "../job.ts";
import { isWhileAlive, parseUnique, portableUnique, type UniqueOptions, uniqueKeyOf } from "./unique-key.ts";

const JOB = { type: "mail.send", queue: "default", payload: "{}", meta: undefined as Json | undefined };
const keyOf = (options: UniqueOptions, job: Partial<typeof JOB> = {}) =>
  uniqueKeyOf(parseUnique(options, "unique"), { ...JOB, ...job }, sha256);
const payload = (value: Json) => ({ payload: JSON.stringify(value) });

describe("canonical JSON", () => {
  it("is RFC 8785: the example of its section 3.2.3, and its numbers", () => {
    const value = { "€": "Euro Sign", "\r": "Carriage Return", דּ: "Hebrew Letter", 1: "One" };
    // Hebrew dalet with dagesh is one of the letters that NFC takes apart; the others are as in the RFC.
    expect(canonicalJson(value)).toBe(
      '{"\\r":"Carriage Return","1":"One","\u05d3\u05bc":"Hebrew Letter","€":"Euro Sign"}',
    );
    expect(canonicalJson([333333333.3333333, 1e30, 4.5, 2e-3, 1e-27, -0])).toBe(
      "[333333333.3333333,1e+30,4.5,0.002,1e-27,0]",
    );
  });

  it("does not depend on the order in which an object was made", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(turned as Json)).toBe(canonicalJson(value as Json));
        expect(JSON.parse(canonicalJson(JSON.parse(JSON.stringify(value)) as Json))).toBeDefined();
      }),
    );
  });
});

/** The least CPU time of five calls, in milliseconds. */
function cost(call: () => unknown): number {
  const times = Array.from({ length: 5 }, () => {
    const from = process.threadCpuUsage();
    call();
    const { user, system } = process.threadCpuUsage(from);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

describe("the cost of canonical JSON", () => {
  it("four times as many combining marks cost less than ten times as much", () => {
    const marks = (count: number) => "\u0300\u0316".repeat(count / 2);
    const few = cost(() => canonicalJson(marks(50_000)));
    expect(cost(() => canonicalJson(marks(200_000)))).toBeLessThan(10 * Math.max(few, 0.5));
  });

  it("a text costs about the same within ten lists and within a thousand", () => {
    const nested = (levels: number) => {
      let value: Json = "x".repeat(300_000);
      for (let level = 0; level < levels; level++) value = [value];
      return value;
    };
    const flat = cost(() => canonicalJson(nested(10)));
    expect(cost(() => canonicalJson(nested(1_000)))).toBeLessThan(10 * Math.max(flat, 0.5));
  });

  it("a text with 31 combining marks in a row is not normalised, one with 30 is", () => {
    const text = (count: number) => `e${"\u0301".repeat(count)}`;
    expect(canonicalJson(text(30))).toBe(JSON.stringify(text(30).normalize("NFC")));
    expect(canonicalJson(text(31))).toBe(JSON.stringify(text(31)));
  });

  it("a unique key covers at most 20,000 keys and values", () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1]));
    expect(keyOf({}, payload(keys(19_990)))).toHaveLength(64);
    expect(() => keyOf({}, payload(keys(20_001)))).toThrow(
      /unique: .*20000 keys and values.*name the fields/,
    );
    expect(keyOf({ payload: ["k1"] }, payload(keys(30_000)))).toHaveLength(64);
  });
});

describe("unique keys", () => {
  it("count the type and the whole payload where nothing is said", () => {
    expect(keyOf({}, payload({ a: 1, b: [2] }))).toBe(keyOf({}, payload({ b: [2], a: 1 })));
    expect(keyOf({}, payload({ a: 1 }))).not.toBe(keyOf({}, payload({ a: 2 })));
    expect(keyOf({}, { type: "a" })).not.toBe(keyOf({}, { type: "b" }));
    expect(keyOf({}, { queue: "a" })).toBe(keyOf({}, { queue: "b" }));
    expect(keyOf({}, { meta: { a: 1 } })).toBe(keyOf({}, { meta: { a: 2 } }));
  });

  it("count what is chosen and nothing else", () => {
    const chosen = { payload: ["customer.id", ["odd.name", 0]] } as const;
    const one = payload({ customer: { id: 7, name: "a" }, "odd.name": [1, 2] });
    expect(keyOf(chosen, one)).toBe(
      keyOf(chosen, payload({ customer: { id: 7, name: "b" }, "odd.name": [1, 3], c: 1 })),
    );
    expect(keyOf(chosen, one)).not.toBe(keyOf(chosen, payload({ customer: { id: 8 }, "odd.name": [1] })));
    expect(keyOf({ payload: false }, payload(1))).toBe(keyOf({ payload: false }, payload(2)));
    expect(keyOf({ queue: true }, { queue: "a" })).not.toBe(keyOf({ queue: true }, { queue: "b" }));
    const byTenant = { meta: ["ten.ant"] };
    expect(keyOf(byTenant, { meta: { "ten.ant": 1, x: 1 } })).toBe(
      keyOf(byTenant, { meta: { "ten.ant": 1 } }),
    );
    expect(keyOf(byTenant, { meta: { "ten.ant": 1 } })).not.toBe(keyOf(byTenant, { meta: { "ten.ant": 2 } }));
    expect(keyOf({ key: "a" }, payload(1))).toBe(keyOf({ key: "a" }, payload(2)));
    expect(keyOf({ key: "a" })).not.toBe(keyOf({ key: "b" }));
  });

  it("a missing path differs from null, and two paths with the same value differ", () => {
    expect(keyOf({ payload: ["a"] }, payload({ a: null }))).not.toBe(keyOf({ payload: ["a"] }, payload({})));
    expect(keyOf({ payload: ["a", "b"] }, payload({ a: 1 }))).not.toBe(
      keyOf({ payload: ["a", "b"] }, payload({ b: 1 })),
    );
    expect(keyOf({ payload: ["toString"] }, payload({}))).toBe(keyOf({ payload: ["toString"] }, payload([])));
  });
});

describe("rules", () => {
  it("default to all states that are not terminal, and with a period to completed as well", () => {
    const live = ["scheduled", "available", "pending", "active", "retryable"];
    expect(parseUnique({}, "unique")).toMatchObject({ states: live, period: null, onConflict: "ignore" });
    expect(parseUnique({ period: "1h" }, "unique").states).toEqual([...live, "completed"]);
    expect(isWhileAlive(parseUnique({ states: live as never }, "unique"))).toBe(true);
    expect(isWhileAlive(parseUnique({ states: ["available"] }, "unique"))).toBe(false);
    expect(isWhileAlive(parseUnique({ states: JOB_STATES }, "unique"))).toBe(false);
    expect(isWhileAlive(parseUnique({ period: "1s" }, "unique"))).toBe(false);
  });

  it("travel as JSON and mean the same", () => {
    for (const options of [
      {},
      { key: "k", queue: true },
      { payload: ["a.b"], meta: ["c"], period: "90s", onConflict: "replace" },
      { payload: false, meta: true, states: ["active", "completed"] },
    ] satisfies UniqueOptions[]) {
      const rule = parseUnique(options, "unique");
      const arrived = JSON.parse(JSON.stringify(portableUnique(rule))) as UniqueOptions;
      expect(parseUnique(arrived, "unique")).toEqual(rule);
    }
  });

  it.each([
    [{ keys: [] }, "unique.keys"],
    [{ key: "" }, "unique.key"],
    [{ key: "a", payload: true }, "unique.key"],
    [{ payload: [] }, "unique.payload"],
    [{ payload: ["a..b"] }, "unique.payload[0]"],
    [{ payload: [[]] }, "unique.payload[0]"],
    [{ queue: "mail" }, "unique.queue"],
    [{ meta: [""] }, "unique.meta[0]"],
    [{ period: "0s" }, "unique.period"],
    [{ period: 60 }, "unique.period"],
    [{ states: [] }, "unique.states"],
    [{ states: ["running"] }, "unique.states"],
    [{ onConflict: "drop" }, "unique.onConflict"],
  ])("are refused where they make no sense: %j", (options, field) => {
    expect(() => parseUnique(options as UniqueOptions, "unique")).toThrow(
      expect.objectContaining({ field, message: expect.stringContaining(field) }),
    );
  });
});
