import { describe, expect, it } from "vitest";
import { checkJsonSchema, type JsonSchema } from "../../core/registry/json-schema.ts";
import type { Json } from "../../core/schema.ts";
import { validators } from "./validator.ts";

const make = await validators();
const validator = (schema: object) => make(checkJsonSchema(schema) as JsonSchema);

describe("5.9 a check against a registered schema", () => {
  it("is refused, and not begun, if it would take too many comparisons", () => {
    const anyOf = Array.from({ length: 1_900 }, (_, nth) => ({ const: nth }));
    const check = validator({ items: { items: { anyOf } } });
    const list = (length: number): Json => Array<Json>(length).fill(1_899);
    expect(check([list(50)])).toBeNull();
    // Without the bound this takes more than a minute of CPU.
    expect(check([list(400_000)])?.message).toMatch(/takes too long/);
  });

  it("ends when its patterns have cost too much, and the next check begins anew", () => {
    const check = validator({ items: { pattern: "^([a-y]{900})*z" } });
    const long = "a".repeat(40_000);
    for (let round = 0; round < 2; round++) {
      expect(check([long])?.message).toMatch(/must match pattern/);
      expect(check([`${"a".repeat(900)}z`])).toBeNull();
      expect(check([long + long])?.message).toMatch(/takes too long/);
    }
  });

  it("a validator still works after its compiler was replaced", () => {
    const first = validator({ items: { pattern: "^first$" } });
    const padding = "x".repeat(60_000);
    for (let nth = 0; nth < 12; nth++) validator({ description: padding, items: { pattern: `^p${nth}$` } });
    expect([first(["first"]), first(["other"])?.at]).toEqual([null, "[0]"]);
  });
});
