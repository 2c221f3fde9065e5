import { describe, expect, it } from "vitest";
import { randomInt, seededRandom } from "../../core/random.ts";
import { SortedList } from "./sorted-list.ts";

const ascending = (a: number, b: number) => a - b;
const all = (list: SortedList<number>) => [...list.from(() => false)];

function listOf(numbers: readonly number[]): SortedList<number> {
  const list = new SortedList<number>(ascending);
  for (const number of numbers) list.add(number);
  return list;
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("SortedList", () => {
  it.each([
    ["growing", upTo(3_000)],
    ["shrinking", upTo(3_000).toReversed()],
    ["mixed", upTo(3_000).map((index) => (index * 1_103) % 3_001)],
  ])("keeps %s items in order", (_name, numbers) => {
    expect(all(listOf(numbers))).toEqual(numbers.toSorted(ascending));
  });

  it("take() starts at the given item, across chunks, and leaves the rest", () => {
    const list = listOf(upTo(2_000));
    expect(list.take(1_000, (number) => number < 500)).toEqual(upTo(1_000).map((number) => number + 500));
    expect(all(list)).toEqual([...upTo(500), ...upTo(500).map((number) => number + 1_500)]);
    expect(list.take(10_000, () => false)).toHaveLength(1_000);
    expect(list.isEmpty).toBe(true);
    expect(list.take(1, () => false)).toEqual([]);
  });

  it("takeIf() takes what is wanted across chunks, keeps the rest, and stops where it is told", () => {
    const list = listOf(upTo(2_000));
    const isEven = (number: number) => (number >= 1_500 ? null : number % 2 === 0);
    const even = upTo(2_000).filter((number) => number >= 500 && number < 1_500 && number % 2 === 0);
    expect(list.takeIf((number) => number < 500, isEven)).toEqual(even);
    expect(all(list)).toEqual(upTo(2_000).filter((number) => !even.includes(number)));
    expect(
      list.takeIf(
        () => false,
        () => true,
      ),
    ).toHaveLength(1_500);
    expect([list.isEmpty, list.first]).toEqual([true, undefined]);
  });

  it("from() starts at the given item", () => {
    const list = listOf(upTo(2_000));
    expect(list.from((number) => number <= 1_234).next().value).toBe(1_235);
    expect([...list.from((number) => number < 5_000)]).toEqual([]);
  });

  it("back() starts before the given item", () => {
    const list = listOf(upTo(2_000));
    expect([...list.back(() => true)]).toEqual(upTo(2_000).toReversed());
    expect(list.back((number) => number < 1_234).next().value).toBe(1_233);
    expect([...list.back((number) => number < 600)]).toEqual(
      upTo(2_000)
        .filter((n) => n < 600)
        .toReversed(),
    );
    expect([...list.back(() => false)]).toEqual([]);
    expect([...listOf([]).back(() => true)]).toEqual([]);
  });

  it("refuses to remove an item that it does not contain", () => {
    expect(() => listOf([1, 3]).remove(2)).toThrow("not found at its position");
    expect(() => listOf([]).remove(2)).toThrow("not found at its position");
  });

  it.each([1, 2, 3])("does what a sorted array does, seed %i", (seed) => {
    const random = seededRandom(seed);
    const list = new SortedList<number>(ascending);
    const model = new Set<number>();
    for (let step = 0; step < 20_000; step++) {
      const number = randomInt(random, 5_000);
      const chance = random();
      if (chance < 0.6) {
        if (!model.has(number)) list.add(number);
        model.add(number);
      } else if (chance < 0.99) {
        if (model.delete(number)) list.remove(number);
      } else {
        const expected = [...model]
          .filter((each) => each >= number)
          .sort(ascending)
          .slice(0, 20);
        expect(list.take(20, (each) => each < number)).toEqual(expected);
        for (const each of expected) model.delete(each);
      }
    }
    expect(all(list)).toEqual([...model].sort(ascending));
  });
});
