import { expect, it } from "vitest";
import { checkJsonSchema } from "./json-schema.ts";
import { mistypedKeywords } from "./mistyped-keywords.ts";

it("names keywords with a typo, wherever they are, with what was meant", () => {
  const schema = checkJsonSchema({
    typ: "array",
    prefixItems: [{ type: "object", requird: ["cents"], properties: { cents: { minimun: 1 } } }],
    anyOf: [{ maxItem: 3 }],
    $defs: { money: { patern: "^x" } },
  });
  expect(mistypedKeywords(schema)).toEqual([
    { field: "schema.typ", meant: "type" },
    { field: "schema.prefixItems[0].requird", meant: "required" },
    { field: "schema.prefixItems[0].properties.cents.minimun", meant: "minimum" },
    { field: "schema.anyOf[0].maxItem", meant: "maxItems" },
    { field: "schema.$defs.money.patern", meant: "pattern" },
  ]);
});

it("says nothing of names of properties, of values, and of notes that look like nothing", () => {
  const schema = checkJsonSchema({
    properties: { requird: { type: "string" }, typ: true },
    required: ["typ"],
    const: { typ: 1 },
    examples: [{ requird: 1 }],
    "x-typ": 1,
    owner: "billing",
  });
  expect(mistypedKeywords(schema)).toEqual([]);
});

it("stops after ten", () => {
  const anyOf = Array.from({ length: 200 }, () => ({ typ: "string" }));
  expect(mistypedKeywords(checkJsonSchema({ anyOf }))).toHaveLength(10);
});
