import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { CurfewError } from "./errors.ts";
import { DOCUMENT_LIMIT, isSchema, type Schema, toJsonText, validate } from "./schema.ts";

class Point {
  readonly x = 1;
}

function refusalOf(act: () => unknown): CurfewError {
  try {
    act();
  } catch (error) {
    return error as CurfewError;
  }
  throw new Error("nothing was refused");
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
}

describe("JSON", () => {
  it.each([null, true, 0, -1.5, "", "ä", [], {}, [1, [2]], { a: { b: null } }, Object.create(null)])(
    "%j is kept as it is",
    (value) => {
      expect(JSON.parse(toJsonText(value, "payload"))).toEqual(value);
    },
  );

  it("an undefined property is left out, as optional fields expect", () => {
    expect(toJsonText({ a: undefined, b: 1 }, "payload")).toBe('{"b":1}');
  });

  it.each<[string, unknown, string]>([
    ["undefined in a list", { list: [1, undefined] }, "payload.list[1]"],
    ["a hole in a list", { list: Array(1) }, "payload.list[0]"],
    ["undefined itself", undefined, "payload"],
    ["NaN", { a: { b: Number.NaN } }, "payload.a.b"],
    ["Infinity", [Number.POSITIVE_INFINITY], "payload[0]"],
    ["a Date", { at: new Date(0) }, "payload.at"],
    ["a Map", { map: new Map([[1, 2]]) }, "payload.map"],
    ["a Set", { set: new Set([1]) }, "payload.set"],
    ["a class instance", { point: new Point() }, "payload.point"],
    ["a boxed number", { boxed: Object(5) }, "payload.boxed"],
    ["bytes", { bytes: new Uint8Array(1) }, "payload.bytes"],
    ["a bigint", { big: 5n }, "payload.big"],
    ["a function", { run: () => 1 }, "payload.run"],
    ["an own toJSON", { toJSON: () => 1 }, "payload.toJSON"],
    ["a symbol", [Symbol("x")], "payload[0]"],
    ["a key named __proto__", JSON.parse('{"a":{"__proto__":{"admin":true}}}'), "payload.a.__proto__"],
  ])("%s is refused, naming where it is", (_name, value, path) => {
    const refusal = refusalOf(() => toJsonText(value, "payload"));
    expect(refusal).toMatchObject({ code: "not_json", field: path });
    expect(refusal.message.startsWith(`${path}: `)).toBe(true);
    expect(refusal.message).toMatch(/cannot be stored as JSON; (use|rename) /);
  });

  it("nesting is bounded, and a cycle is found by it instead of hanging", () => {
    expect(JSON.parse(toJsonText(nested(1_000), "payload"))).toBeTypeOf("object");
    const refusal = refusalOf(() => toJsonText(nested(1_001), "payload"));
    expect(refusal).toMatchObject({ code: "not_json" });
    expect(refusal.message).toContain("nest at most 1000 levels");
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    expect(refusalOf(() => toJsonText(cyclic, "payload")).message.length).toBeLessThan(400);
  });
});

describe("the size limit", () => {
  const quotes = 2;

  it("is one megabyte, and the last byte still fits", () => {
    const largest = "x".repeat(DOCUMENT_LIMIT - quotes);
    expect(toJsonText(largest, "payload")).toHaveLength(1_000_000);
    const refusal = refusalOf(() => toJsonText(`${largest}x`, "payload"));
    expect(refusal).toMatchObject({ code: "too_large", field: "payload" });
    expect(refusal.message).toContain("1000001 bytes");
  });

  it.each([
    ["ä", 2],
    ["€", 3],
    ["😀", 4],
  ])("counts UTF-8 bytes: %s has %d", (letter, bytes) => {
    const text = (count: number) => letter.repeat(count);
    const limit = 30 * bytes + quotes;
    expect(Buffer.byteLength(toJsonText(text(30), "meta", limit))).toBe(limit);
    expect(refusalOf(() => toJsonText(text(31), "meta", limit)).code).toBe("too_large");
  });

  it("a lone surrogate counts as the escape it is written as", () => {
    const text = toJsonText("\ud800", "meta", 8);
    expect(text).toBe('"\\ud800"');
    expect(refusalOf(() => toJsonText("\ud800", "meta", 7)).code).toBe("too_large");
  });
});

describe("schemas", () => {
  const schema = z.object({ user: z.object({ age: z.int().positive() }), tags: z.array(z.string()) });

  it("any Standard Schema is one, other things are not", () => {
    expect(isSchema(schema)).toBe(true);
    for (const value of [null, undefined, {}, () => 1, { "~standard": {} }, "zod"]) {
      expect(isSchema(value)).toBe(false);
    }
  });

  it("gives what the schema makes of a value", () => {
    const trimmed = z.object({ name: z.string().trim(), nth: z.int().default(1) });
    expect(validate(trimmed, { name: " a " }, "payload", "invalid_payload")).toEqual({ name: "a", nth: 1 });
  });

  it("refuses with the path, the value and the schema's own words", () => {
    const value = { user: { age: -5 }, tags: [] };
    const refusal = refusalOf(() => validate(schema, value, "payload", "invalid_payload"));
    expect(refusal).toMatchObject({ code: "invalid_payload", field: "payload.user.age" });
    expect(refusal.message).toMatch(/^payload\.user\.age: -5 does not fit the schema; .+/);
  });

  it("says how much more is wrong", () => {
    const refusal = refusalOf(() => validate(schema, { user: {}, tags: [1] }, "result", "invalid_result"));
    expect(refusal).toMatchObject({ code: "invalid_result", field: "result.user.age" });
    expect(refusal.message).toMatch(/ \(and 1 more\)$/);
  });

  it("reads paths of objects as well as of keys, and survives an issue without one", () => {
    const failing = (issue: { message: string; path?: { key: string }[] }): Schema => ({
      "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [issue] }) },
    });
    const check = (issue: Parameters<typeof failing>[0]) =>
      refusalOf(() => validate(failing(issue), { a: 1 }, "payload", "invalid_payload")).message;
    expect(check({ message: "bad", path: [{ key: "a" }] })).toBe("payload.a: 1 does not fit the schema; bad");
    expect(check({ message: "bad" })).toBe('payload: {"a":1} does not fit the schema; bad');
  });

  it("waits for an asynchronous schema, and only for one", async () => {
    const slow = z.string().refine(async (text) => text === "yes", "say yes");
    const asynchronous: Schema<string, string> = {
      "~standard": { ...slow["~standard"], validate: (value) => slow["~standard"].validate(value) },
    };
    await expect(validate(asynchronous, "yes", "payload", "invalid_payload")).resolves.toBe("yes");
    const refusal = Promise.resolve(validate(asynchronous, "no", "payload", "invalid_payload"));
    await expect(refusal).rejects.toMatchObject({ code: "invalid_payload" });
    expect(validate(z.string(), "now", "payload", "invalid_payload")).toBe("now");
  });
});
