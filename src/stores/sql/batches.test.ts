import { describe, expect, it } from "vitest";
import { batchesOf } from "./batches.ts";

const sizeOf = (size: number) => size;

describe("batches", () => {
  it("are as long as they may be, in order, and nothing is left out", () => {
    expect(batchesOf([1, 1, 1, 1, 1], { items: 2, text: 100 }, sizeOf)).toEqual([[1, 1], [1, 1], [1]]);
    expect(batchesOf([40, 40, 30, 70, 30], { items: 9, text: 100 }, sizeOf)).toEqual([
      [40, 40],
      [30, 70],
      [30],
    ]);
  });

  it("hold an item alone that is too large for any", () => {
    expect(batchesOf([10, 500, 10], { items: 9, text: 100 }, sizeOf)).toEqual([[10], [500], [10]]);
  });

  it("are the list itself where it fits, and none where there is nothing", () => {
    const items = [1, 2, 3];
    expect(batchesOf(items, { items: 3, text: 6 }, sizeOf)[0]).toBe(items);
    expect(batchesOf([], { items: 3, text: 6 }, sizeOf)).toEqual([]);
  });
});
