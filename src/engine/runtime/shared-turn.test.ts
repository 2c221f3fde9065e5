import { expect, test } from "vitest";
import { Batcher } from "./batcher.ts";
import { SharedTurn } from "./shared-turn.ts";

test("all that wait for a turn go on together, and share the call of a batcher", async () => {
  const turns: (() => void)[] = [];
  const turn = new SharedTurn({ soon: (callback) => void turns.push(callback) });
  const calls: string[] = [];
  const batcher = new Batcher<string, string>({
    call: async (items) => {
      calls.push(items.join(""));
      return items;
    },
  });
  const send = async (item: string) => {
    await turn.next();
    return batcher.add(item);
  };
  const first = send("a");
  await undefined;
  const second = send("b");
  expect(turns.length).toBe(1);
  turns[0]?.();
  expect(await Promise.all([first, second])).toEqual(["a", "b"]);
  expect(calls).toEqual(["ab"]);
  const third = send("c");
  expect(turns.length).toBe(2);
  turns[1]?.();
  expect(await third).toBe("c");
});
