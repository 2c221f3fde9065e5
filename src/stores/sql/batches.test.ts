import { describe, expect, it } from "vitest";
import { batchesOf } from "./batches.ts";

const sizeOf = (size: number) => size;

describe("batches", () => {
  it("are as long as allowed, in order, and complete", () => {
    expect(batchesOf([1, 1, 1, 1, 1], { items: 2, text: 100 }, sizeOf)).toEqual([[1, 1], [1, 1], [1]]);
    expect(batchesOf([40, 40, 30, 70, 30], { items: 9, text: 100 }, sizeOf)).toEqual([
      [40, 40],
      [30, 70],
      [30],
    ]);
  });

  it("an item that is too large is a batch by itself", () => {
    expect(batchesOf([10, 500, 10], { items: 9, text: 100 }, sizeOf)).toEqual([[10], [500], [10]]);
  });

  it("a list that fits is its only batch, and an empty list has none", () => {
    const items = [1, 2, 3];
    expect(batchesOf(items, { items: 3, text: 6 }, sizeOf)[0]).toBe(items);
    expect(batchesOf([], { items: 3, text: 6 }, sizeOf)).toEqual([]);
  });
});
