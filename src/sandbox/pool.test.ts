import { describe, expect, it } from "vitest";
import { callOf, type FakeCarrier, MEGABYTE, openPool, openRun } from "../../test/support/pool-stage.ts";
import { StopError, TimeoutError } from "../core/job/reasons.ts";
import { SandboxKilled, SandboxUnavailable } from "../ports/sandbox.ts";
import type { PoolOptions } from "./pool.ts";
import { encodeError, type Report } from "./protocol.ts";

const REASON = new TimeoutError("execution", 500, 500, 800);

describe("a run", () => {
  it("returns a result from before the verdict, and none from after it", async () => {
    const { run, child } = openRun();
    run.abort(REASON);
    child.say({ say: "returned", key: "a 1", result: 1 });
    await run.condemn();
    expect(await run.result).toBe(1);

    const late = openRun();
    void late.run.condemn();
    late.child.say({ say: "returned", key: "a 1", result: 1 });
    const end = late.run.kill();
    await late.system.advance(200);
    expect(await end).toMatchObject({ isGone: true });
    await expect(late.run.result).rejects.toThrow(SandboxKilled);
  });

  it("is gone even if this process gets no CPU for seconds between the kill and the exit", async () => {
    const { run, child, system } = openRun();
    child.look = { stack: "It hung here:\n    at spin" };
    // The test says when it exits.
    child.isKilled = true;
    const end = run.kill();
    await system.settle();
    // The timers that are due fire first, and only then it is read that the child has ended.
    system.pause(3_000);
    await system.advance(0);
    child.exit({ code: null, signal: "SIGKILL" });
    expect(await end).toMatchObject({ isGone: true });
  });

  it("fails when its child ends, with code 0 too; after the result an exit changes nothing", async () => {
    const { run, child } = openRun();
    child.exit({ code: 0, signal: null });
    await expect(run.result).rejects.toMatchObject({ code: "killed", details: { exitCode: 0 } });

    const done = openRun();
    done.child.say({ say: "returned", key: "a 1", result: 2 });
    done.child.exit({ code: 0, signal: null });
    expect(await done.run.result).toBe(2);
    await done.system.advance(100);
    expect(done.carriers).toHaveLength(2);
  });

  it("ignores reports of another attempt in the same child", async () => {
    const { pool, run, child, calls } = openRun();
    child.say({ say: "returned", key: "a 1" }, { say: "idle", key: "a 1" });
    await run.result;
    expect(pool.admits("b 1", () => {})).toBe(true);
    const heard: unknown[] = [];
    const next = pool.run(callOf("b 1", heard));
    child.say(
      { say: "progress", key: "a 1", fraction: 0.9 },
      { say: "log", key: "a 1", message: "late" },
      { say: "print", key: "a 1", stream: "stdout", text: "late" },
      { say: "checkpoint", key: "a 1", number: 1, state: "late" },
      { say: "enqueue", key: "a 1", number: 2, definition: { type: "x" }, payload: "1", options: {} },
      { say: "returned", key: "a 1", result: "late" },
      { say: "idle", key: "a 1" },
      { say: "returned", key: "b 1", result: "its own" },
    );
    expect(await next.result).toBe("its own");
    expect([calls, heard]).toEqual([[], []]);
    expect(child.isKilled).toBe(false);
  });

  it("a child that reports idle during an attempt, or asks too many questions, is ended", async () => {
    const { run, child, system } = openRun();
    child.say({ say: "idle", key: "a 1" });
    await system.advance(10);
    await expect(run.result).rejects.toThrow("reporting idle");

    const flood = openRun();
    const ask: Report = { say: "checkpoint", key: "a 1", number: 1, state: 1 };
    expect(() => flood.child.say(...Array.from({ length: 1_001 }, () => ask))).toThrow("too much at once");
  });

  it("a child whose cleanup never ends is replaced", async () => {
    const { run, child, system, carriers } = openRun();
    child.say({ say: "returned", key: "a 1", result: 1 });
    expect(await run.result).toBe(1);
    await system.advance(4_000);
    expect(child.isKilled).toBe(false);
    await system.advance(1_100);
    expect(child.isKilled).toBe(true);
    expect(carriers).toHaveLength(2);
  });

  it("sends the child the current deadline, even if it changed while the run waited", () => {
    const { pool, ready, carrier } = openPool();
    expect(pool.admits("a 1", () => {})).toBe(false);
    const run = pool.run(callOf("a 1"));
    run.deadline(9_000, 8_500);
    ready(0);
    expect(carrier(0).last).toMatchObject({ say: "run", job: { deadline: 9_000, remaining: 8_500 } });
  });
});

describe("8.4 where it hangs", () => {
  it("a healthy event loop is never looked at", async () => {
    const { run, child, system } = openRun();
    for (let beat = 0; beat < 5; beat++) {
      await system.advance(100);
      child.say({ say: "alive", key: "a 1" });
    }
    run.abort(REASON);
    child.say({ say: "heard", key: "a 1", resources: ["Timeout", "TCPSocketWrap", "Timeout"] });
    for (let beat = 0; beat < 50; beat++) {
      await system.advance(100);
      child.say({ say: "alive", key: "a 1" });
    }
    const end = run.kill();
    await system.advance(200);
    expect((await end).where).toBe("Its event loop was running; it waited for Timeout, TCPSocketWrap.");
    expect(child.captures).toEqual([]);
  });

  it.each([
    { silence: 60_000, from: 55_000 },
    { silence: 6_000, from: 3_000 },
  ])(
    "a loop that is silent for $from of $silence ms is looked at until it counts as stalled",
    async ({ silence, from }) => {
      const { child, system } = openRun({ silence });
      await system.advance(from - 1);
      expect(child.captures).toEqual([]);
      await system.advance(1);
      expect(child.captures).toEqual([silence - from]);
    },
  );

  it("a blocked event loop is looked at in grace, right after the signal", async () => {
    const { run, child, system } = openRun();
    child.look = { stack: "It hung here:\n    at spin" };
    await system.advance(500);
    expect(child.captures).toEqual([]);
    run.abort(REASON);
    await system.advance(10);
    expect(child.captures).toHaveLength(1);
    expect(run.where()).toBe("It hung here:\n    at spin");
    const from = system.monotonic();
    await run.condemn();
    expect(system.monotonic() - from).toBe(0);
    expect(child.captures).toHaveLength(1);
  });

  it("a loop that has just begun to block is looked at after 250 ms of silence", async () => {
    const { run, child, system } = openRun();
    await system.advance(400);
    child.say({ say: "alive", key: "a 1" });
    await system.advance(100);
    run.abort(REASON);
    await system.advance(100);
    expect(child.captures).toEqual([]);
    await system.advance(60);
    expect(child.captures).toHaveLength(1);
  });

  it("if the first look finds nothing, it is looked at again for 100 ms after the verdict, and the reason is given", async () => {
    const { run, child, system } = openRun();
    await system.advance(500);
    run.abort(REASON);
    await system.advance(2_000);
    expect(child.captures).toEqual([1_000]);
    const condemned = run.condemn();
    await system.advance(100);
    await condemned;
    expect(child.captures).toEqual([1_000, 100]);
    expect(run.where()).toBe("(no stack: it was silent)");
  });

  it("a stack that is not known 100 ms after the verdict stays unknown, and the error says what is seen from outside", async () => {
    const { run, child, system } = openRun();
    await system.advance(500);
    run.abort(REASON);
    await system.advance(300);
    let isKnown = false;
    void run.condemn().then(() => {
      isKnown = true;
    });
    await system.advance(99);
    expect(isKnown).toBe(false);
    await system.advance(1);
    expect(isKnown).toBe(true);
    expect(child.captures).toEqual([1_000]);
    expect(run.where()).toBe("(no stack: it has not answered the debugger; nothing is seen)");
  });

  it("a child that slept through an earlier look is not waited for", async () => {
    const { run, child, system } = openRun();
    child.isAsleep = true;
    await system.advance(500);
    run.abort(REASON);
    await system.advance(300);
    let isKnown = false;
    void run.condemn().then(() => {
      isKnown = true;
    });
    await system.settle();
    expect(isKnown).toBe(true);
    expect(run.where()).toBe("(no stack: it has not answered the debugger; nothing is seen)");
  });

  it("the stack of a child that runs again is dropped", async () => {
    const { run, child, system } = openRun();
    await system.advance(500);
    run.abort(REASON);
    await system.advance(10);
    child.say({ say: "heard", key: "a 1", resources: [] });
    await system.advance(1_000);
    expect(run.where()).toContain("Its event loop was running");
    // Its debugger is open, so it gets no other attempt.
    child.say({ say: "returned", key: "a 1" }, { say: "idle", key: "a 1" });
    expect(child.isKilled).toBe(true);
  });
});

describe("the queue", () => {
  it("admits jobs when a sandbox is ready, in order", async () => {
    const { pool, carriers, ready, system } = openPool({ size: 3, loading: 2 });
    const again: string[] = [];
    for (const key of ["a 1", "b 1", "c 1"]) expect(pool.admits(key, () => again.push(key))).toBe(false);
    expect(carriers).toHaveLength(1);
    await system.advance(100);
    expect(carriers).toHaveLength(2);
    ready(1);
    expect(carriers).toHaveLength(3);
    expect(again).toEqual(["a 1"]);
    expect(pool.admits("d 1", () => again.push("d 1"))).toBe(false);
    expect(pool.admits("a 1", () => {})).toBe(true);
    ready(0);
    expect(again).toEqual(["a 1", "b 1"]);
  });

  it("reserves a sandbox for an admitted job for one second", async () => {
    const { pool, ready, system } = openPool({ size: 1 });
    const again: string[] = [];
    pool.admits("a 1", () => again.push("a 1"));
    ready(0);
    pool.admits("b 1", () => again.push("b 1"));
    await system.advance(900);
    expect(again).toEqual(["a 1"]);
    await system.advance(200);
    expect(again).toEqual(["a 1", "b 1"]);
    expect(pool.admits("a 1", () => again.push("a 1 again"))).toBe(false);
  });

  it("forgets a dismissed job, waiting or admitted", () => {
    const { pool, ready, carriers } = openPool({ size: 1 });
    const again: string[] = [];
    for (const key of ["a 1", "b 1", "c 1"]) pool.admits(key, () => again.push(key));
    pool.dismiss("a 1");
    ready(0);
    expect(again).toEqual(["b 1"]);
    pool.dismiss("b 1");
    expect(again).toEqual(["b 1", "c 1"]);
    expect(carriers).toHaveLength(1);
  });

  it("a run without a reservation waits for a sandbox that is not reserved", async () => {
    const { pool, ready, carrier } = openPool({ size: 1 });
    pool.admits("a 1", () => {});
    ready(0);
    const stranger = pool.run(callOf("b 1"));
    expect(carrier(0).orders).toHaveLength(1);
    const run = pool.run(callOf("a 1"));
    expect(carrier(0).last).toMatchObject({ say: "run", key: "b 1" });
    stranger.abort(new StopError("cancelled", 1, null));
    carrier(0).say({ say: "returned", key: "b 1" }, { say: "idle", key: "b 1" });
    expect(carrier(0).last).toMatchObject({ say: "run", key: "a 1" });
    carrier(0).say({ say: "returned", key: "a 1", result: "a" });
    expect(await run.result).toBe("a");
  });
});

describe("8.5 a module that does not load", () => {
  const unloadable: Report = { say: "unloadable", error: encodeError(new SyntaxError("bad deploy")) };

  it("fails the job that waited for it; after three failures jobs are released until one loads", async () => {
    const { pool, carriers, carrier, changes, system, ready } = openPool({ size: 10 });
    const again: string[] = [];
    for (let nth = 0; nth < 10; nth++) pool.admits(`${nth} 1`, () => again.push(`${nth} 1`));
    await system.advance(100);
    expect(carriers).toHaveLength(10);
    carrier(0).say(unloadable);
    expect(again).toEqual(["0 1"]);
    await expect(pool.run(callOf("0 1")).result).rejects.toThrow("bad deploy");
    carrier(1).say(unloadable);
    carrier(2).say(unloadable);
    expect(again).toHaveLength(10);
    expect(changes).toMatchObject([{ reason: expect.stringContaining("bad deploy") }]);
    await expect(pool.run(callOf("9 1")).result).rejects.toThrow(SandboxUnavailable);
    for (let nth = 3; nth < 10; nth++) carrier(nth).say(unloadable);
    await system.advance(2_500);
    expect(carriers).toHaveLength(11);
    ready(10);
    expect(changes).toHaveLength(2);
    expect(changes[1]).toBeNull();
    expect(pool.refusal()).toBeNull();
    expect(pool.admits("9 2", () => {})).toBe(true);
  });

  it("a module that does not load in time fails, and the error says where it hung", async () => {
    const { pool, carrier, system } = openPool({ load: 1_000 });
    let isAgain = false;
    pool.admits("a 1", () => {
      isAgain = true;
    });
    carrier(0).look = { stack: "It hung here:\n    at load" };
    await system.advance(1_100);
    expect(isAgain).toBe(true);
    await expect(pool.run(callOf("a 1")).result).rejects.toMatchObject({
      code: "load_timeout",
      stack: "It hung here:\n    at load",
    });
    expect(carrier(0).isKilled).toBe(true);
  });

  it("names the exit of a process that ends while it loads", async () => {
    const { pool, carrier } = openPool();
    pool.admits("a 1", () => {});
    carrier(0).exit({ code: 3, signal: null });
    await expect(pool.run(callOf("a 1")).result).rejects.toThrow(
      "The sandbox ended while it loaded its module (exit code 3)",
    );
  });

  it("counts a process that cannot be started as a failed load", async () => {
    const { pool, system, changes } = openPool({
      spare: 1,
      open: () => {
        throw new Error("spawn ENOMEM");
      },
    });
    await system.advance(100);
    expect(changes).toMatchObject([{ reason: expect.stringContaining("ENOMEM") }]);
    expect(pool.refusal()).not.toBeNull();
  });
});

describe("8.5 limits of a sandbox", () => {
  const cases: [string, Partial<PoolOptions>, (child: FakeCarrier) => number][] = [
    ["its number of jobs", { jobs: 1 }, () => 0],
    ["a certain age", { age: 5_000 }, () => 6_000],
    [
      "too much memory",
      { memory: 64 * MEGABYTE },
      (child) => {
        child.taken += 65 * MEGABYTE;
        return 0;
      },
    ],
  ];

  it.each(cases)("after %s it is replaced, between two jobs", async (_, options, happens) => {
    const { run, child, system, carriers } = openRun(options);
    child.say({ say: "returned", key: "a 1", result: 1 });
    await system.advance(happens(child));
    child.say({ say: "idle", key: "a 1" });
    expect(await run.result).toBe(1);
    await system.advance(10);
    expect(child.isKilled).toBe(true);
    expect(carriers).toHaveLength(2);
  });

  it("too much memory ends it during an attempt", async () => {
    const { run, child, system } = openRun({ memory: 64 * MEGABYTE });
    child.taken += 60 * MEGABYTE;
    await system.advance(1_000);
    expect(child.isKilled).toBe(false);
    child.taken += 10 * MEGABYTE;
    await system.advance(300);
    await expect(run.result).rejects.toThrow("out of memory: it used 70 MB, and 64 MB are allowed");
  });
});
