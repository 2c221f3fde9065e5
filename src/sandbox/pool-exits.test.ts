import { describe, expect, it } from "vitest";
import { callOf, openPool } from "../../test/support/pool-stage.ts";
import { SandboxKilled, SandboxUnavailable } from "../ports/sandbox.ts";

const EXIT = { code: 0, signal: null };

/** A pool with two idle sandboxes. */
async function openTwo() {
  const opened = openPool({ spare: 2, size: 2 });
  await opened.system.advance(100);
  opened.ready(0);
  opened.ready(1);
  return opened;
}

/** A pool with one sandbox, and an attempt that was sent to it. */
function openUnentered() {
  const opened = openPool({ spare: 1, size: 1 });
  opened.ready(0);
  const run = opened.pool.run(callOf("a 1"));
  return { ...opened, run, child: opened.carrier(0) };
}

describe("8.3 a sandbox that exits while it is idle", () => {
  it("gets no job from the moment at which its exit is seen", async () => {
    const { pool, carrier } = await openTwo();
    carrier(0).events.onExiting();
    expect(pool.admits("a 1", () => {})).toBe(true);
    pool.run(callOf("a 1"));
    expect(carrier(0).last).toMatchObject({ say: "load" });
    expect(carrier(1).last).toMatchObject({ say: "run", key: "a 1" });
  });

  it("admits no job for the sandbox that exits, and starts another one", async () => {
    const { pool, carrier, carriers, system, ready } = openPool({ spare: 1, size: 1 });
    ready(0);
    carrier(0).events.onExiting();
    let isAgain = false;
    const again = () => {
      isAgain = true;
    };
    expect(pool.admits("a 1", again)).toBe(false);
    await system.advance(100);
    expect(carriers).toHaveLength(2);
    ready(1);
    expect(isAgain).toBe(true);
  });

  it("fails a load if the exit is seen before the module is loaded", async () => {
    const { pool, carrier } = openPool();
    pool.admits("a 1", () => {});
    carrier(0).events.onExiting();
    carrier(0).exit({ ...EXIT, code: 3 });
    await expect(pool.run(callOf("a 1")).result).rejects.toThrow("while it loaded its module (exit code 3)");
  });
});

describe("8.3 a job given to a sandbox that exits before the handler is entered", () => {
  it("goes to another idle sandbox with the time that is left", async () => {
    const { pool, carrier, system } = await openTwo();
    const run = pool.run(callOf("a 1"));
    expect(carrier(0).last).toMatchObject({ say: "run", key: "a 1", job: { remaining: 500 } });
    await system.advance(100);
    carrier(0).exit(EXIT);
    expect(carrier(1).last).toMatchObject({ say: "run", key: "a 1", job: { remaining: 400 } });
    carrier(1).say({ say: "entered", key: "a 1" }, { say: "returned", key: "a 1", result: 7 });
    expect(await run.result).toBe(7);
  });

  it("is released if no other sandbox is idle, so that loading one is not charged to the attempt", async () => {
    const { run, child, pool } = openUnentered();
    child.exit(EXIT);
    await expect(run.result).rejects.toThrow(SandboxUnavailable);
    expect(pool.status()).toMatchObject({ waiting: 0, busy: 0 });
  });

  it("is killed if the handler was entered", async () => {
    const { run, child } = openUnentered();
    child.say({ say: "entered", key: "a 1" });
    child.exit(EXIT);
    await expect(run.result).rejects.toThrow(SandboxKilled);
  });

  it("is killed if not all reports of the sandbox were read: its entry may be among them", async () => {
    const { run, child } = openUnentered();
    child.exit({ ...EXIT, isHeardOut: false });
    await expect(run.result).rejects.toThrow(SandboxKilled);
  });

  it("is killed in the fourth sandbox in a row that exits like this", async () => {
    const { pool, carrier, system, ready } = openPool({ spare: 1, size: 1 });
    for (let nth = 0; nth < 4; nth++) {
      await system.advance(100);
      ready(nth);
      const run = pool.run(callOf(`a ${nth}`));
      carrier(nth).exit(EXIT);
      await expect(run.result).rejects.toThrow(nth < 3 ? SandboxUnavailable : SandboxKilled);
    }
  });

  it("is released when the pool closes", async () => {
    const { run, pool, system } = openUnentered();
    const closed = pool.close();
    await system.advance(100);
    await closed;
    await expect(run.result).rejects.toThrow(SandboxUnavailable);
  });
});
