import { describe, expect, it } from "vitest";
import { createSimSystem } from "./sim-clock.ts";

const START = 1_800_000_000_000;
const open = () => createSimSystem({ seed: 1, startAt: START });

describe("the simulated system", () => {
  it("runs timers in the order in which they are due, and ties in the order in which they were set", async () => {
    const system = open();
    const ran: string[] = [];
    for (const [delay, name] of [
      [20, "c"],
      [10, "a"],
      [20, "d"],
      [10, "b"],
      [30, "e"],
    ] as const) {
      system.after(delay, () => ran.push(`${name} ${system.monotonic()}`));
    }
    await system.advance(25);
    expect(ran).toEqual(["a 10", "b 10", "c 20", "d 20"]);
    expect([system.monotonic(), system.wall(), system.pendingTimers]).toEqual([25, START + 25, 1]);
  });

  it("runs timers that are set meanwhile, if they are due within the advance", async () => {
    const system = open();
    const ran: number[] = [];
    const tick = () => {
      ran.push(system.monotonic());
      system.after(10, tick);
    };
    system.after(10, tick);
    await system.advance(55);
    expect(ran).toEqual([10, 20, 30, 40, 50]);
  });

  it("lets promises of any depth settle between two timers", async () => {
    const system = open();
    const ran: string[] = [];
    system.after(1, () => {
      void (async () => {
        for (let turn = 0; turn < 1_000; turn++) await Promise.resolve();
        ran.push("promises");
      })();
    });
    system.after(2, () => ran.push("next timer"));
    await system.advance(2);
    expect(ran).toEqual(["promises", "next timer"]);
  });

  it("runs callbacks of soon, including those they add, before time moves on", async () => {
    const system = open();
    const ran: string[] = [];
    system.after(1, () => system.soon(() => system.soon(() => ran.push(`soon ${system.monotonic()}`))));
    system.after(2, () => ran.push("timer"));
    await system.advance(5);
    expect(ran).toEqual(["soon 1", "timer"]);
  });

  it("does not run a cancelled timer, not even one due at the same instant", async () => {
    const system = open();
    const ran: string[] = [];
    const timers = ["a", "b", "c"].map((name) => system.after(5, () => ran.push(name)));
    timers[1]?.cancel();
    timers[1]?.cancel();
    await system.advance(5);
    timers[0]?.cancel();
    expect(ran).toEqual(["a", "c"]);
  });

  it("runs timers late after a pause, each once and at the current time", async () => {
    const system = open();
    const ran: number[] = [];
    system.after(5, () => ran.push(system.monotonic()));
    system.after(50, () => ran.push(system.monotonic()));
    system.pause(1_000);
    expect(ran).toEqual([]);
    await system.advance(0);
    expect(ran).toEqual([1_000, 1_000]);
  });

  it("does not change timers when the wall clock jumps", async () => {
    const system = open();
    const ran: number[] = [];
    system.after(10, () => ran.push(system.monotonic()));
    system.stepWall(-3_600_000);
    expect(system.wall()).toBe(START - 3_600_000);
    await system.advance(10);
    expect(ran).toEqual([10]);
  });

  it("repeats its randomness from the seed", () => {
    const draw = () => {
      const system = open();
      const bytes = new Uint8Array(8);
      system.fill(bytes);
      return [system.random(), ...bytes];
    };
    expect(draw()).toEqual(draw());
  });
});
