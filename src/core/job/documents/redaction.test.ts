import { describe, expect, it } from "vitest";
import { z } from "zod";
import { redactValue, restoreValue, scrubValue, secretsIn } from "../../redact.ts";
import { toJsonText } from "../../schema.ts";
import { preparePayload } from "../enqueue/envelope.ts";
import type { JobRow } from "../job.ts";
import { defineJob } from "../job-definition.ts";
import { jobView } from "../job-view.ts";
import { markedPaths, parseRedact, visiblePayload } from "./redaction.ts";

describe("redaction of documents", () => {
  it("replaces what a path leads to, and nothing else", () => {
    const value = { a: { b: "x", c: 1 }, list: [{ p: 1 }, { p: 2, q: 3 }, 4], n: null };
    expect(redactValue(value, [["a", "b"], ["list", "*", "p"], ["n"], ["missing", "x"]])).toEqual({
      a: { b: "[redacted]", c: 1 },
      list: [{ p: "[redacted]" }, { p: "[redacted]", q: 3 }, 4],
      n: "[redacted]",
    });
    expect(redactValue(value, [[]])).toBe("[redacted]");
    expect(value.a.b).toBe("x");
  });

  it("keeps the digits of numbers that JavaScript cannot hold", () => {
    const options = { redact: [["payload", "secret"]] };
    const payload = '{"id":12345678901234567890,"secret":"x","x":1.50}';
    expect(visiblePayload({ payload, options })).toBe(
      '{"id":12345678901234567890,"secret":"[redacted]","x":1.50}',
    );
  });

  it("finds marks in objects, lists, records, unions and recursive schemas", () => {
    const secret = z.string().meta({ redact: true });
    const tree = z.object({
      secret,
      get children() {
        return z.array(tree).optional();
      },
    });
    const paths = markedPaths(
      z.object({
        a: z.object({ b: secret.optional() }),
        list: z.array(z.object({ s: secret })),
        map: z.record(z.string(), secret),
        either: z.union([z.object({ t: secret }), z.number()]),
        at: z.date(),
      }),
      "payload",
      "payload",
    ).map((path) => path.join("."));
    expect(paths).toEqual(["payload.a.b", "payload.list.*.s", "payload.map.*", "payload.either.t"]);
    const deep = markedPaths(tree, "payload", "payload").map((path) => path.join("."));
    expect(deep).toContain("payload.secret");
    expect(deep).toContain("payload.children.*.children.*.secret");
    expect(deep.length).toBeLessThan(20);
  });

  it("refuses paths that lead nowhere, and too many of them", () => {
    expect(() => parseRedact("payload.a", "redact")).toThrow(/redact: "payload.a"/);
    expect(() => parseRedact(["card.number"], "redact")).toThrow(/redact\[0\]: "card.number".*payload/);
    expect(() => parseRedact(["payload..a"], "redact")).toThrow(/redact\[0\]/);
    const many = Array.from({ length: 51 }, (_, index) => `payload.f${index}`);
    expect(() => parseRedact(many, "redact")).toThrow(/51 paths/);
    expect(parseRedact(["payload.a", ["payload", "a"], ["payload", "b.c", 0]], "redact")).toEqual([
      ["payload", "a"],
      ["payload", "b.c", "0"],
    ]);
  });

  it("an error of the schema quotes no hidden value", () => {
    const job = defineJob({
      type: "a.b",
      payload: z.object({ pin: z.string().max(3).meta({ redact: true }), n: z.number() }),
    });
    expect(() => preparePayload(job, { pin: "123456", n: 1 })).toThrow(
      /^payload\.pin: "\[redacted\]" does not fit/,
    );
    const quoting = defineJob({
      type: "a.b",
      redact: ["payload.pin"],
      payload: z.custom<{ pin: string }>(() => false, { error: "received 123456" }),
    });
    expect(() => preparePayload(quoting, { pin: "123456" })).toThrow(
      'payload: {"pin":"[redacted]"} does not fit the schema; received [redacted]',
    );
  });

  it("scrubs long values out of texts, names and numbers, and leaves short ones", () => {
    const secrets = secretsIn({ a: "hunter22", b: { c: [123456, "ab"] }, d: "no" }, [["a"], ["b"]]);
    expect(secrets).toEqual(["hunter22", "123456"]);
    expect(scrubValue({ m: "pw hunter22!", n: 123456, hunter22: "ab" }, secrets)).toEqual({
      m: "pw [redacted]!",
      n: "[redacted]",
      "[redacted]": "ab",
    });
  });

  it("restores a marker only at its own place", () => {
    const source = { a: "secret", list: [{ p: 1 }], b: "open" };
    const edited = { a: "[redacted]", list: [{ p: "[redacted]" }, { p: "[redacted]" }], b: "[redacted]" };
    expect(restoreValue(edited, source, [["a"], ["list", "*", "p"]])).toEqual({
      a: "secret",
      list: [{ p: 1 }, { p: "[redacted]" }],
      b: "[redacted]",
    });
  });

  it("a view has the real values and prints the redacted ones", () => {
    const row = {
      payload: toJsonText({ pin: "123456" }, "payload"),
      options: { redact: [["payload", "pin"]] },
      result: null,
      progress: null,
      checkpoint: null,
    } as unknown as JobRow;
    const view = jobView(row);
    expect(view.payload).toEqual({ pin: "123456" });
    expect(JSON.parse(JSON.stringify(view)).payload).toEqual({ pin: "[redacted]" });
  });
});
