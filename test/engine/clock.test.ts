import { describe, expect, it } from "vitest";
import { EngineClock } from "../../src/engine/runtime/engine-clock.ts";
import type { MachineClock } from "../../src/ports/system.ts";
import { createLatch, createSimSystem, type SimSystem } from "../../src/testing/index.ts";
import { START } from "./stage.ts";

/** A machine with a clock of its own, and a store on another one. */
function world(options: { readonly drift?: number; readonly machine?: MachineClock } = {}) {
  const system: SimSystem & { drift: number } = Object.assign(createSimSystem({ seed: 1, startAt: START }), {
    drift: 0,
    ...options,
  });
  let storeAhead = 0;
  const clock = async () => Math.floor(START + system.monotonic() + storeAhead);
  return {
    system,
    store: { clock },
    setStore: (by: number) => {
      storeAhead += by;
    },
    elapsed: () => START + system.monotonic(),
  };
}

/** Lets the machine sleep: its monotonic clock stands still, the wall clock and the store's do not. */
function sleeper() {
  let slept = 0;
  const machine: MachineClock = { boot: "one", monotonic: () => 0, slept: () => slept };
  return {
    machine,
    sleep(by: number, { system, setStore }: Pick<ReturnType<typeof world>, "system" | "setStore">) {
      slept += by;
      system.stepWall(by);
      setStore(by);
    },
  };
}

describe("3.10 the engine's clock", () => {
  it("has wider bounds the older its reading is", async () => {
    const { system, store, elapsed } = world({ drift: 1e-4 });
    const clock = await EngineClock.open(system, store);
    expect([clock.now() - elapsed(), clock.upper() - elapsed()]).toEqual([0, 1]);
    await system.advance(20_000);
    expect([clock.now() - elapsed(), clock.upper() - elapsed()]).toEqual([-2, 3]);
    await system.advance(10_000);
    expect([clock.now() - elapsed(), clock.upper() - elapsed()]).toEqual([0, 1]);
    clock.close();
  });

  it.each([300, -300])("creeps towards a store's clock that was set by %i ms", async (step) => {
    const { system, store, setStore, elapsed } = world();
    const clock = await EngineClock.open(system, store);
    await system.advance(10_000);
    setStore(step);
    await clock.sample();
    let last = clock.now();
    for (let second = 0; second < 700; second++) {
      await system.advance(1_000);
      const passed = clock.now() - last;
      last = clock.now();
      // Of each second it takes or leaves half a millisecond, and the reading counts whole ones.
      expect(passed).toBeGreaterThanOrEqual(998);
      expect(passed).toBeLessThanOrEqual(1_002);
    }
    expect(Math.abs(clock.now() - elapsed() - step)).toBeLessThanOrEqual(1);
    expect(Math.abs(clock.upper() - elapsed() - step)).toBeLessThanOrEqual(2);
    clock.close();
  });

  it("follows a store clock that was set ahead by minutes to within a second", async () => {
    const { system, store, setStore, elapsed } = world();
    const clock = await EngineClock.open(system, store);
    setStore(600_000);
    await clock.sample();
    expect(clock.now() - elapsed()).toBe(599_000);
    expect(clock.upper() - elapsed()).toBe(599_001);
    clock.close();
  });

  it("stands still after the store clock was set back by minutes", async () => {
    const { system, store, setStore, elapsed } = world();
    const clock = await EngineClock.open(system, store);
    await system.advance(5_000);
    const before = clock.now();
    setStore(-600_000);
    await clock.sample();
    await system.advance(300_000);
    expect([clock.now(), clock.upper()]).toEqual([before, before]);
    await system.advance(400_000);
    expect(clock.now() - elapsed()).toBeLessThanOrEqual(-599_000);
    expect(clock.now()).toBeGreaterThan(before);
    clock.close();
  });

  it("adds a sleep of the machine to its upper bound until the store clock is read again", async () => {
    const { machine, sleep } = sleeper();
    const all = world({ machine });
    const clock = await EngineClock.open(all.system, all.store);
    await all.system.advance(1_000);
    const [now, elapsed] = [clock.now(), clock.elapsed()];
    sleep(3_600_000, all);
    expect(clock.upper()).toBe(now + 3_600_001);
    expect(clock.elapsed() - elapsed).toBe(3_600_000);
    await all.system.settle();
    expect(clock.now()).toBe(now + 3_600_000);
    clock.close();
  });

  it("does not take a sleep during a reading for a jump of the store's clock", async () => {
    const { machine, sleep } = sleeper();
    const all = world({ machine });
    const clock = await EngineClock.open(all.system, all.store);
    const { clock: read } = all.store;
    all.store.clock = async () => {
      all.store.clock = read;
      sleep(290, all);
      const instant = await read();
      sleep(1_976, all);
      return instant;
    };
    await clock.sample();
    expect([clock.now() - all.elapsed(), clock.upper() - all.elapsed()]).toEqual([2_266, 2_267]);
    clock.close();
  });

  it.each([600_000, -600_000])("is not moved by a wall clock that was set by %i ms", async (step) => {
    const { machine } = sleeper();
    const { system, store, elapsed } = world({ machine });
    const clock = await EngineClock.open(system, store);
    system.stepWall(step);
    expect(clock.upper() - elapsed()).toBe(1);
    expect(clock.elapsed()).toBe(system.monotonic());
    await clock.sample();
    expect(clock.now() - elapsed()).toBe(0);
    clock.close();
  });

  it("does not count a jump of the wall clock as a sleep if the store clock jumped too", async () => {
    const { machine } = sleeper();
    const { system, store, setStore, elapsed } = world({ machine });
    const clock = await EngineClock.open(system, store);
    system.stepWall(800);
    setStore(800);
    await clock.sample();
    expect(clock.now() - elapsed()).toBeLessThanOrEqual(1);
    clock.close();
  });

  it("3.10 ignores a reading that is older than the last one", async () => {
    const { system, store, elapsed } = world();
    const clock = await EngineClock.open(system, store);
    const { clock: read } = store;
    const slow = createLatch();
    store.clock = async () => {
      const instant = await read();
      await slow.pass();
      return instant;
    };
    const overtaken = clock.sample();
    store.clock = read;
    // Without a clock of the machine, this is taken for a sleep until the store's clock is read again.
    system.stepWall(3_600_000);
    await clock.sample();
    await system.advance(3_000);
    slow.open();
    await overtaken;
    expect([clock.now() - elapsed(), clock.upper() - elapsed()]).toEqual([0, 1]);
    clock.close();
  });
});
