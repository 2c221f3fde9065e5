import { describe, expect, it } from "vitest";
import { shapeProblem } from "./shape.ts";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("the shape of a document", () => {
  it("may have 100 levels, not 101, besides the levels of its message", () => {
    expect(shapeProblem(nested(100))).toBeUndefined();
    expect(shapeProblem(nested(101))).toBe("more than 100 levels");
    expect(shapeProblem(nested(110), 10)).toBeUndefined();
    expect(shapeProblem(nested(111), 10)).toBe("more than 100 levels");
  });

  it("may have 50,000 keys, not 50,001", () => {
    const keys = (count: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, nth) => [`k${nth}`, 1])));
    expect(shapeProblem(keys(50_000))).toBeUndefined();
    expect(shapeProblem(keys(50_001))).toBe("more than 50000 keys");
  });

  it("may have 100,000 lists and objects, not 100,001", () => {
    const lists = (count: number) => JSON.stringify(Array.from({ length: count - 1 }, () => []));
    expect(shapeProblem(lists(100_000))).toBeUndefined();
    expect(shapeProblem(lists(100_001))).toBe("more than 100000 lists and objects");
  });

  it.each(['"', "\\", '\\"', '\\\\"', '[["'])("brackets in a string after %j are text", (start) => {
    const text = JSON.stringify([start + nested(200), { [start + nested(200)]: 1 }]);
    expect(shapeProblem(text)).toBeUndefined();
    expect(shapeProblem(`[${text},${nested(100)}]`)).toBe("more than 100 levels");
  });

  it("of a text that is no JSON is read without an error", () => {
    for (const text of ["", '"', '"\\', "]]]]"]) expect(shapeProblem(text)).toBeUndefined();
  });
});
