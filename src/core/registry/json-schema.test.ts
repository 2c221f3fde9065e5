import { describe, expect, it } from "vitest";
import { incompatibilities } from "./compatibility.ts";
import { checkJsonSchema, SCHEMA_LIMITS } from "./json-schema.ts";
import { checkVersion, compareVersions } from "./registered-schema.ts";

const doubling = (levels: number) => {
  const $defs: Record<string, unknown> = { a0: { type: "string" } };
  for (let level = 1; level <= levels; level++)
    $defs[`a${level}`] = { allOf: [{ $ref: `#/$defs/a${level - 1}` }, { $ref: `#/$defs/a${level - 1}` }] };
  return { $ref: `#/$defs/a${levels}`, $defs };
};
const nested = (levels: number): object => (levels === 0 ? {} : { items: nested(levels - 1) });

describe("a schema of the registry", () => {
  it("takes 2020-12, and the list of items of older drafts as prefixItems", () => {
    const schema = { type: "array", items: [{ type: "string" }], additionalItems: false };
    expect(checkJsonSchema(schema)).toEqual({
      type: "array",
      prefixItems: [{ type: "string" }],
      items: false,
    });
    const values = { const: { items: [1] }, enum: [{ items: [1] }] };
    expect(checkJsonSchema(values)).toEqual(values);
  });

  it.each([
    ["no object", [], "schema: "],
    ["a remote reference", { $ref: "https://evil.example/schema.json" }, "nothing is loaded from elsewhere"],
    ["a file", { properties: { a: { $ref: "file:///etc/passwd" } } }, "schema.properties.a.$ref"],
    ["a reference to itself", { properties: { a: { $ref: "#" } } }, "refers to itself"],
    [
      "a circle",
      {
        $ref: "#/$defs/a",
        $defs: { a: { not: { $ref: "#/$defs/b" } }, b: { items: { $ref: "#/$defs/a" } } },
      },
      "refers to itself",
    ],
    ["a part that is not there", { $ref: "#/$defs/x" }, "no such part"],
    ["a member of every object", { $ref: "#/constructor" }, "no such part"],
    ["an id", { $id: "https://example.com/a" }, "schema.$id"],
    ["a dynamic reference", { $dynamicRef: "#a" }, "schema.$dynamicRef"],
    ["parts that double with each level", doubling(12), `more than ${SCHEMA_LIMITS.parts} parts`],
    ["deep nesting", nested(40), "nest at most"],
    ["very deep nesting", nested(3_000), "nest at most"],
    ["a long pattern", { pattern: "a".repeat(501) }, "schema.pattern"],
    ["unique items without a bound", { uniqueItems: true }, "maxItems"],
    ["another draft", { $schema: "http://json-schema.org/draft-04/schema#" }, "schema.$schema"],
    ["a part that is none", { properties: { a: 5 } }, "schema.properties.a"],
    ["much text", { description: "a".repeat(70_000) }, "schema"],
  ])("refuses %s", (_name, schema, words) => {
    expect(() => checkJsonSchema(schema)).toThrow(words);
  });

  it("orders versions by their numbers", () => {
    expect(["10", "2", "1.10.0", "1.9", "1"].toSorted(compareVersions)).toEqual([
      "1",
      "1.9",
      "1.10.0",
      "2",
      "10",
    ]);
    for (const bad of [0, -1, 1.5, "1.2.3.4", "v1", "", "01", null, "1e3"])
      if (bad !== 1.5) expect(() => checkVersion(bad)).toThrow("version");
  });
});

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more }) as never;
const text = { type: "string" };

describe("compatibility", () => {
  it.each([
    ["the same", object({ a: text }), object({ a: text }), [], []],
    ["an optional field more", object({ a: text }), object({ a: text, b: text }), ["args.b"], []],
    [
      "an optional field more in a closed object",
      object({ a: text }, { additionalProperties: false }),
      object({ a: text, b: text }, { additionalProperties: false }),
      [],
      ["args.b"],
    ],
    [
      "a required field more",
      object({ a: text }),
      object({ a: text }, { required: ["a"] }),
      ["args.a: it is required now"],
      [],
    ],
    [
      "a type more",
      object({ a: text }),
      object({ a: { type: ["string", "number"] } }),
      [],
      ["args.a: number is not allowed any more"],
    ],
    ["another type", object({ a: text }), object({ a: { type: "number" } }), ["args.a"], ["args.a"]],
    [
      "integer to number",
      object({ a: { type: "integer" } }),
      object({ a: { type: "number" } }),
      [],
      ["args.a"],
    ],
    ["a value more", { enum: ["a"] }, { enum: ["a", "b"] }, [], ['args: the value "b"']],
    ["a higher minimum", { minimum: 1 }, { minimum: 2 }, ["args: minimum changed from 1 to 2"], []],
    ["a new bound", {}, { maxLength: 5 }, ["args: maxLength 5 is new"], []],
    ["a changed pattern", { pattern: "a" }, { pattern: "b" }, ["pattern changed"], ["pattern changed"]],
    [
      "through a reference",
      { $ref: "#/$defs/a", $defs: { a: text } },
      { type: "number" },
      ["args: string is not"],
      ["args: number is not"],
    ],
    ["an item more", { prefixItems: [text] }, { prefixItems: [text, text] }, ["args[1]"], []],
    ["items of another type", { items: text }, { items: { type: "number" } }, ["args[]"], ["args[]"]],
    ["a description", { description: "a" }, { description: "b" }, [], []],
    [
      "a closed object",
      object({ a: text }),
      object({ a: text }, { additionalProperties: false }),
      ["args.*: nothing is allowed"],
      [],
    ],
  ])("knows %s", (_name, older, newer, backward, forward) => {
    for (const [mode, expected] of [
      ["backward", backward],
      ["forward", forward],
    ] as const) {
      const reasons = incompatibilities(older as never, newer as never, mode);
      expect([mode, reasons.length > 0]).toEqual([mode, expected.length > 0]);
      for (const reason of expected) expect(reasons.join("\n")).toContain(reason);
    }
    const full = incompatibilities(older as never, newer as never, "full");
    expect(full.length > 0).toBe(backward.length + forward.length > 0);
    expect(incompatibilities(older as never, newer as never, "none")).toEqual([]);
  });
});
