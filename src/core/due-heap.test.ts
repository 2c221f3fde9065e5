import { describe, expect, it } from "vitest";
import { DueHeap } from "./due-heap.ts";
import { randomInt, seededRandom } from "./random.ts";

const item = (name: number) => ({ name, slot: -1 });

describe("DueHeap", () => {
  it("returns what is due, smallest first, and at most the limit", () => {
    const heap = new DueHeap<{ name: number; slot: number }>();
    for (const at of [5, 3, 9, 1, 7]) heap.add(item(at), at);
    expect(heap.nextAt).toBe(1);
    expect(heap.takeDue(7, 2).map(({ name }) => name)).toEqual([1, 3]);
    expect(heap.takeDue(7, 10).map(({ name }) => name)).toEqual([5, 7]);
    expect(heap.takeDue(8, 10)).toEqual([]);
    expect(heap.nextAt).toBe(9);
  });

  it("returns nothing if it is empty", () => {
    const heap = new DueHeap();
    expect(heap.nextAt).toBeNull();
    expect(heap.takeDue(1e15, 1)).toEqual([]);
  });

  it("refuses to remove an item that it does not contain", () => {
    const heap = new DueHeap();
    heap.add(item(1), 1);
    expect(() => heap.remove(item(2))).toThrow("not found in this heap");
  });

  it.each([1, 2, 3])("does what a sorted list does, seed %i", (seed) => {
    const random = seededRandom(seed);
    const heap = new DueHeap<{ name: number; slot: number }>();
    let model: { at: number; item: { name: number; slot: number } }[] = [];
    for (let step = 0; step < 5_000; step++) {
      const chance = random();
      if (chance < 0.5 || model.length === 0) {
        const at = randomInt(random, 1_000);
        const added = item(step);
        heap.add(added, at);
        model.push({ at, item: added });
      } else if (chance < 0.9) {
        const [removed] = model.splice(randomInt(random, model.length), 1);
        if (removed) heap.remove(removed.item);
        expect(removed?.item.slot).toBe(-1);
      } else {
        const now = randomInt(random, 300);
        const taken = heap.takeDue(now, 10_000);
        const due = model.filter(({ at }) => at <= now).map(({ item }) => item);
        expect(taken.map(({ name }) => name).sort()).toEqual(due.map(({ name }) => name).sort());
        model = model.filter(({ at }) => at > now);
      }
      const smallest = model.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
      expect(heap.nextAt).toBe(model.length === 0 ? null : smallest);
    }
  });
});
