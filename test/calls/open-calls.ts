import { type CallsOptions, createCalls } from "../../src/calls/index.ts";
import { createSimSystem } from "../../src/testing/sim-clock.ts";

/** Calls in virtual time. */
export function openCalls(options: Omit<CallsOptions, "system"> = {}) {
  const system = createSimSystem({ seed: 1, startAt: 0 });
  const calls = createCalls({ ...options, system });
  const sleep = (delay: number) =>
    new Promise<void>((resolve) => void system.after(delay, resolve, { keepAlive: true }));
  /** When the promise settled, by the virtual clock, and how. */
  const watch = async <Value>(promise: Promise<Value>) => {
    const seen: { at?: number; value?: Value; error?: unknown } = {};
    promise.then(
      (value) => Object.assign(seen, { at: system.monotonic(), value }),
      (error) => Object.assign(seen, { at: system.monotonic(), error }),
    );
    await system.settle();
    return seen;
  };
  return { system, calls, sleep, watch, within: calls.within };
}

export const never = () => new Promise<never>(() => {});
