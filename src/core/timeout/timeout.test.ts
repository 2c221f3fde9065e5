import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConcurrencyError, checkTimeout, compareIds, leaseLoss, scopeOf } from "./timeout.ts";
import { decodeHeaders, encodeHeaders } from "./timeout-headers.ts";

describe("compareIds", () => {
  it("is the order of UTF-8 bytes, whatever the characters", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "z", "é", "\ud7ff", "\uffee", "\u{10000}", "🦉") });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareIds(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });
});

describe("headers", () => {
  it("come back as they were, JSON and bytes, in their order", () => {
    const json = fc.jsonValue({ noUnicodeString: false, depthSize: "small" });
    // That one name is refused, wherever it stands.
    const value = fc.oneof(
      fc.uint8Array(),
      json.filter((each) => !JSON.stringify(each).includes("__proto__")),
    );
    const name = fc.string().filter((text) => text !== "__proto__");
    fc.assert(
      fc.property(fc.dictionary(name, value, { noNullPrototype: true }), (headers) => {
        const given = JSON.parse(JSON.stringify({ names: Object.keys(headers) })) as { names: string[] };
        const back = decodeHeaders(encodeHeaders(headers as never));
        expect(Object.keys(back)).toEqual(given.names);
        for (const [key, each] of Object.entries(headers))
          expect(back[key]).toEqual(each instanceof Uint8Array ? each : JSON.parse(JSON.stringify(each)));
      }),
    );
  });

  it("a text header that looks like encoded bytes stays text", () => {
    const headers = { a: ["x", null, "AAE="], b: { bytes: "AAE=" } };
    expect(decodeHeaders(encodeHeaders(headers))).toEqual(headers);
  });

  it("a header that cannot be stored is refused with its field", () => {
    expect(() => encodeHeaders({ at: new Date(0) } as never)).toThrow(/^headers\[0\]\[1\]/);
    expect(() => encodeHeaders([] as never)).toThrow(/^headers: \[\]/);
    expect(() => encodeHeaders({ big: "x".repeat(1_000_001) })).toThrow(/larger than the limit/);
  });
});

describe("leaseLoss", () => {
  it.each([
    [undefined, "gone"],
    [{ owner: null, leaseUntil: null }, "unleased"],
    [{ owner: "you", leaseUntil: 11 }, "stolen"],
    [{ owner: "you", leaseUntil: 9 }, "stolen"],
    [{ owner: "me", leaseUntil: 9 }, "expired"],
    [{ owner: "me", leaseUntil: 10 }, "expired"],
    [{ owner: "me", leaseUntil: 11 }, null],
  ] as const)("of %j, asked by me at 10, is %s", (row, loss) => {
    expect(leaseLoss(row, "me", 10)).toBe(loss);
  });

  it("the error of a lost lease names the timeout, the owner and the reason", () => {
    const error = new ConcurrencyError("t", "me", "expired");
    expect(error).toMatchObject({ name: "ConcurrencyError", code: "concurrency", id: "t", owner: "me" });
    expect(error.message).toBe("timeout t is not leased by me: its lease has expired");
  });
});

describe("a timeout", () => {
  it("has a scope for its key: the saga, or else the destination", () => {
    const scopes = [
      scopeOf({ destination: "a" }),
      scopeOf({ destination: "b" }),
      scopeOf({ destination: "a", saga: ["saga", "1"] }),
      scopeOf({ destination: "b", saga: ["saga", "1"] }),
      scopeOf({ destination: "a", saga: ['saga","1', ""] }),
    ];
    expect(scopes[2]).toBe(scopes[3]);
    expect(new Set(scopes).size).toBe(4);
  });

  it("a timeout with an unknown field is refused", () => {
    const timeout = { id: "t", destination: "d", dueAt: 1, dueat: 2 };
    expect(() => checkTimeout(timeout)).toThrow(/timeout\.dueat/);
  });
});
