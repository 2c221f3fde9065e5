import { expect, it } from "vitest";
import { DeliveryPace } from "./delivery-pace.ts";

/** Turns and timers that a test moves. */
function fakeLoop() {
  const turns: (() => void)[] = [];
  const timers: { readonly delay: number; readonly callback: () => void }[] = [];
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    timers,
    system: {
      soon: (callback: () => void) => void turns.push(callback),
      after(delay: number, callback: () => void) {
        timers.push({ delay, callback });
        return { cancel() {} };
      },
    },
    async turn() {
      for (const callback of turns.splice(0)) callback();
      await settle();
    },
    async fire() {
      for (const { callback } of timers.splice(0)) callback();
      await settle();
    },
  };
}

it("lets one call begin in each turn of the event loop, in their order", async () => {
  const loop = fakeLoop();
  const pace = new DeliveryPace(loop.system);
  const begun: number[] = [];
  const begin = (index: number) => void pace.started().then(() => begun.push(index));
  for (const index of [0, 1, 2]) begin(index);
  for (const expected of [[0], [0, 1], [0, 1, 2]]) {
    await loop.turn();
    expect(begun).toEqual(expected);
  }
  await loop.turn();
  begin(3);
  await loop.turn();
  expect(begun).toEqual([0, 1, 2, 3]);
});

it("ends calls together that were answered within a moment", async () => {
  const loop = fakeLoop();
  const pace = new DeliveryPace(loop.system);
  const ended: number[] = [];
  const end = (index: number) => void pace.ended().then(() => ended.push(index));
  for (const index of [0, 1, 2]) end(index);
  expect(loop.timers.map(({ delay }) => delay)).toEqual([25]);
  expect(ended).toEqual([]);
  await loop.fire();
  expect(ended).toEqual([0, 1, 2]);
  end(3);
  expect(loop.timers).toHaveLength(1);
  await loop.fire();
  expect(ended).toEqual([0, 1, 2, 3]);
});
