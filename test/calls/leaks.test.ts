import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { adaptive, type CallContext, createCalls } from "../../src/calls/index.ts";
import { createSimSystem } from "../../src/testing/sim-clock.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const ROUNDS = 10;
/** `npm run test:long -- calls` times out 100,000 calls, as many with adaptive limits, and as many streams. */
const PER_ROUND = Number(process.env.CURFEW_TIMED_OUT_CALLS ?? 1_000);
const GROWTH = 3_000_000;

it("calls, adaptive calls and streams that time out leave no timer, no listener and no memory", async () => {
  const system = createSimSystem({ seed: 1, startAt: 0 });
  const calls = createCalls({ system });
  let listeners = 0;
  /** A signal that counts its listeners. Each serves a few calls: Node searches all listeners of a signal for each one. */
  const countedSignal = () => {
    const { signal } = new AbortController();
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: unknown[]) => {
      listeners += 1;
      addEventListener.apply(signal, args as never);
    };
    signal.removeEventListener = (...args: unknown[]) => {
      listeners -= 1;
      removeEventListener.apply(signal, args as never);
    };
    return signal;
  };
  const signals = Array.from({ length: 500 }, countedSignal);
  const hang = () => new Promise<IteratorResult<never>>(() => {});
  const source = () => ({
    [Symbol.asyncIterator]: () => ({
      next: hang,
      return: async () => ({ done: true as const, value: undefined }),
    }),
  });
  const heaps: number[] = [];
  let timedOut = 0;
  for (let round = 0; round < ROUNDS; round++) {
    for (let count = 0; count < PER_ROUND; count++) {
      const signal = signals[count % signals.length] as AbortSignal;
      const failed = () => void timedOut++;
      const limits = { attempt: { milliseconds: 1_000 + (count % 100) }, signal };
      const hear = (context: CallContext) => new Promise<never>(() => context.signal.aborted);
      calls.within(limits, hear).catch(failed);
      const learns = adaptive({ floor: "1s", ceiling: { milliseconds: 1_500 + (count % 15) } });
      calls.within({ name: `learns ${count % 7}`, attempt: learns, signal }, hear).catch(failed);
      const idle = { milliseconds: 1_000 + (count % 100) };
      calls.limitStream({ idle, signal }, source).next().catch(failed);
    }
    await system.advance(2_000);
    collect();
    heaps.push(process.memoryUsage().heapUsed);
  }
  expect(timedOut).toBe(3 * ROUNDS * PER_ROUND);
  expect([calls.pending, system.pendingTimers, listeners]).toEqual([0, 0, 0]);
  expect((heaps.at(-1) as number) - (heaps[2] as number)).toBeLessThan(GROWTH);
});
