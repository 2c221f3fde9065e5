import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { sha256 } from "./sha256.ts";

const nodes = (text: string) => createHash("sha256").update(text).digest("hex");

it("hashes as Node does, around every border of a block", () => {
  for (let length = 0; length < 200; length++) {
    const text = "a".repeat(length);
    expect(sha256(text), `${length} characters`).toBe(nodes(text));
  }
});

it("hashes any text as Node does", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), (text) => {
      expect(sha256(text)).toBe(nodes(text));
    }),
    { numRuns: 200 },
  );
});
