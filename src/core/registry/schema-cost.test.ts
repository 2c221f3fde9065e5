import { describe, expect, it } from "vitest";
import type { Json } from "../schema.ts";
import { checkJsonSchema, type JsonSchema, SCHEMA_LIMITS } from "./json-schema.ts";
import { patternWeight } from "./pattern-weight.ts";
import { SchemaCost } from "./schema-cost.ts";

const allows = (schema: object, args: Json[]) => new SchemaCost(schema as JsonSchema).allows(args);
const choices = (count: number) => ({ anyOf: Array.from({ length: count }, (_, nth) => ({ const: nth })) });
const list = (length: number): Json[] => Array<Json>(length).fill(1);

describe("the weight of a pattern", () => {
  it.each([
    ["abc", 3],
    ["a{50}", 50],
    ["(ab){50}", 150],
    ["((a{10}){10}){10}", 1_110],
    ["[a-z]{2,20}", 20],
    ["\\{5}", 3],
    ["[{5}]{3}", 3],
    ["a{,5}", 5],
    ["x{5", 3],
  ])("%s weighs %i", (pattern, weight) => {
    expect(patternWeight(pattern)).toBe(weight);
  });

  it("of one pattern and of all together is limited", () => {
    expect(() => checkJsonSchema({ pattern: "[a-z]{1000}".repeat(3) })).toThrow("schema.pattern");
    const pattern = "[a-z]{900}";
    const many = { allOf: Array(12).fill({ pattern }) };
    expect(() => checkJsonSchema(many)).toThrow(/allOf\[11\]\.pattern.*maxLength/);
    expect(checkJsonSchema({ pattern, $defs: {} })).toMatchObject({ pattern });
    expect(SCHEMA_LIMITS.patternWeights).toBe(10_000);
  });
});

describe("what a check may cost", () => {
  it("a long list against many choices is too much, each of them alone is not", () => {
    const schema = { items: { items: choices(1_900) } };
    expect(allows(schema, [list(100)])).toBe(true);
    expect(allows(schema, [list(20_000)])).toBe(false);
    expect(allows({ items: { items: { type: "number" } } }, [list(400_000)])).toBe(true);
  });

  it("counts the parts that a value meets, and not the whole schema", () => {
    const schema = { prefixItems: [choices(1_900), { items: { type: "number" } }] };
    expect(allows(schema, [1, list(400_000)])).toBe(true);
  });

  it("counts values of enums, references and what objects bring", () => {
    const values = Array.from({ length: 9_000 }, (_, nth) => nth);
    const $defs = { big: { enum: values } };
    const ref = { $ref: "#/$defs/big" };
    expect(allows({ items: { items: ref }, $defs }, [list(1_000)])).toBe(false);
    const object = Object.fromEntries(list(1_000).map((value, nth) => [`k${nth}`, value]));
    for (const keyword of ["additionalProperties", "unevaluatedProperties", "propertyNames"])
      expect([keyword, allows({ items: { [keyword]: ref }, $defs }, [object])]).toEqual([keyword, false]);
    expect(allows({ items: { patternProperties: { "^k": ref } }, $defs }, [object])).toBe(false);
    expect(allows({ items: { properties: { k1: ref } }, $defs }, [object])).toBe(true);
    for (const keyword of ["not", "if", "then", "else", "contains", "unevaluatedItems"])
      expect([
        keyword,
        allows({ items: { items: { [keyword]: ref }, contains: ref }, $defs }, [list(1_000)]),
      ]).toEqual([keyword, false]);
  });
});
