import { describe, expect, it } from "vitest";
import { backoff, jittered } from "./pace.ts";

describe("backoff", () => {
  it("begins with the first delay, multiplies it, and stops at the longest", () => {
    const doubling = { first: 100, factor: 2, most: 500 };
    expect([1, 2, 3, 4, 5].map((tries) => backoff(tries, doubling))).toEqual([100, 200, 400, 500, 500]);
  });

  it("stays at the longest delay after more tries than a number can count powers", () => {
    expect(backoff(100_000, { first: 25, factor: 4, most: 1_600 })).toBe(1_600);
  });
});

describe("jittered", () => {
  it("spreads a delay from three quarters of it to five quarters", () => {
    expect(jittered(1_000, () => 0)).toBe(750);
    expect(jittered(1_000, () => 0.5)).toBe(1_000);
    expect(jittered(1_000, () => 1)).toBe(1_250);
  });
});
