import { describe, expect, it } from "vitest";
import { nearestName } from "./nearest-name.ts";

describe("nearestName", () => {
  it.each([
    ["payment", ["payments", "default"], "payments"],
    ["paymnets", ["payments", "default"], "payments"],
    ["defalut", ["default"], "default"],
    ["mails", ["mail", "rails"], "mail"],
    ["card.chrage", ["card.charge", "card.change"], "card.charge"],
  ])("takes %s for one of %j: %s", (name, known, meant) => {
    expect(nearestName(name, known)).toBe(meant);
    expect(nearestName(name, known.toReversed())).toBe(meant);
  });

  it.each([
    ["payments", ["payments", "payment"]],
    ["payments", ["default", "mail"]],
    ["a", ["b"]],
    ["ab", ["ac"]],
    ["x".repeat(100), ["y".repeat(100), `${"x".repeat(99)}y`]],
    ["mail", []],
  ])("finds nothing near %s in %j", (name, known) => {
    expect(nearestName(name, known)).toBeUndefined();
  });

  it("prefers fewer mistakes, then the alphabet", () => {
    expect(nearestName("abcdef", ["abcdxx", "abcdex"])).toBe("abcdex");
    expect(nearestName("abcdef", ["abcdez", "abcdey"])).toBe("abcdey");
  });
});
