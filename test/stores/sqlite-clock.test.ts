import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { type AttemptContext, defineJob, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import type { MachineClock, System } from "../../src/ports/system.ts";
import { machineClock } from "../../src/stores/sqlite/machine-clock.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

const WALL = 1_800_000_000_000;
const STEPS = [600_000, -600_000];

/** A machine whose clocks stand still until a test moves them. */
class FakeMachine {
  boot = "one";
  wall = WALL;
  monotonic = 5_000;
  slept = 0;

  get system(): System {
    const clock: MachineClock = {
      boot: this.boot,
      monotonic: () => this.monotonic,
      slept: () => this.slept,
    };
    return { ...realSystem, wall: () => this.wall, machine: clock };
  }

  pass(delay: number): void {
    this.wall += delay;
    this.monotonic += delay;
  }

  sleep(delay: number): void {
    this.wall += delay;
    this.slept += delay;
  }

  reboot(off: number): void {
    this.boot = `${this.boot} more`;
    this.wall += off;
    this.monotonic = 0;
    this.slept = 0;
  }
}

let folder: string;
let path: string;
const stores = new Set<Store>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-clock-"));
  path = join(folder, "curfew.db");
});

afterEach(async () => {
  for (const store of stores) await store.close();
  stores.clear();
  rmSync(folder, { recursive: true });
});

async function open(system: System): Promise<Store> {
  const store = await openSqliteStore({ path, system });
  stores.add(store);
  return store;
}

describe("the clock of a SQLite file", () => {
  it.each(STEPS)("is not moved by a wall clock that is set by %i ms, for nobody", async (step) => {
    const machine = new FakeMachine();
    const [first, second] = [await open(machine.system), await open(machine.system)];
    expect([await first.clock(), await second.clock()]).toEqual([WALL, WALL]);
    machine.pass(1_000);
    machine.wall += step;
    const third = await open(machine.system);
    const all = () => Promise.all([first, second, third].map((store) => store.clock()));
    expect(await all()).toEqual([WALL + 1_000, WALL + 1_000, WALL + 1_000]);
    machine.pass(25_000);
    // The first process that looks anchors it anew, and all of them creep towards the wall clock from there.
    expect(await all()).toEqual([WALL + 26_000, WALL + 26_000, WALL + 26_000]);
    machine.pass(30_000);
    const crept = WALL + 56_000 + Math.sign(step) * 3;
    expect(await all()).toEqual([crept, crept, crept]);
  });

  it("counts a sleep of the machine once, whichever process notices it", async () => {
    const machine = new FakeMachine();
    const [first, second] = [await open(machine.system), await open(machine.system)];
    await first.clock();
    machine.pass(1_000);
    machine.sleep(3_600_000);
    expect([await first.clock(), await second.clock()]).toEqual([WALL + 3_601_000, WALL + 3_601_000]);
    machine.pass(10);
    expect(await second.clock()).toBe(WALL + 3_601_010);
  });

  it("asks the wall clock after a boot, unless that clock was never set", async () => {
    const machine = new FakeMachine();
    await (await open(machine.system)).clock();
    for (const store of stores) await store.close();
    machine.reboot(3_600_000);
    const store = await open(machine.system);
    expect(await store.clock()).toBe(WALL + 3_600_000);
    await store.close();
    machine.reboot(-machine.wall);
    expect(await (await open(machine.system)).clock()).toBe(WALL + 3_600_000);
  });

  it("is ahead no longer at the next start after one with a wall clock that was ahead", async () => {
    const machine = new FakeMachine();
    await (await open(machine.system)).clock();
    for (const store of stores) await store.close();
    machine.wall += 3_600_000;
    const wrong = await open(machine.system);
    expect(await wrong.clock()).toBe(WALL + 3_600_000);
    machine.pass(30_000);
    machine.wall -= 3_600_000;
    // A deadline of a running process does not move.
    expect(await wrong.clock()).toBe(WALL + 3_630_000);
    await wrong.close();
    machine.pass(1_000);
    expect(await (await open(machine.system)).clock()).toBe(WALL + 31_000);
  });

  it("is set right by the wall clock where nobody has the file open, and only there", async () => {
    const machine = new FakeMachine();
    const first = await open(machine.system);
    await first.clock();
    machine.wall += 600_000;
    const second = await open(machine.system);
    expect(await second.clock()).toBe(WALL);
    await first.close();
    await second.close();
    expect(await (await open(machine.system)).clock()).toBe(WALL + 600_000);
  });

  it("is the wall clock again where a process was killed that had it open", async () => {
    const machine = new FakeMachine();
    const store = await open(machine.system);
    await store.clock();
    machine.pass(1_000);
    const before = rawAnchor();
    await store.close();
    // As a killed process leaves it: the last anchor is older than what was seen.
    const file = new DatabaseSync(path);
    file.prepare("update curfew_clock set monotonic = ?, wall = ?, time = ?").run(...(before as number[]));
    file.close();
    machine.wall -= 60_000;
    expect(await (await open(machine.system)).clock()).toBe(WALL - 59_000);
  });

  it("answers while another program keeps the file locked", async () => {
    const machine = new FakeMachine();
    const store = await open(machine.system);
    await store.clock();
    const file = new DatabaseSync(path);
    file.exec("begin immediate");
    machine.pass(60_000);
    expect(await store.clock()).toBe(WALL + 60_000);
    file.exec("rollback");
    file.close();
  });

  it("is the wall clock where processes have no other in common", async () => {
    const machine = new FakeMachine();
    const { machine: _none, ...system } = machine.system;
    const store = await open(system);
    machine.wall += 600_000;
    expect(await store.clock()).toBe(WALL + 600_000);
  });

  function rawAnchor(): unknown[] {
    const file = new DatabaseSync(path);
    const row = file.prepare("select monotonic, wall, time from curfew_clock").get();
    file.close();
    return Object.values(row ?? {});
  }
});

describe("the clock that processes of one machine share", () => {
  it.runIf(process.platform === "linux")("runs on, and this machine has not slept backwards", () => {
    const clock = machineClock() as MachineClock;
    expect(clock.boot).toMatch(/^[0-9a-f-]{36}$/);
    const first = clock.monotonic();
    expect(clock.monotonic()).toBeGreaterThan(first);
    expect(clock.slept()).toBeGreaterThanOrEqual(0);
    expect(clock.slept()).toBeLessThan(first + 86_400_000 * 365);
  });
});

/** Real time, because engines on a file wait for a real disk. A failure would be ten minutes off, not milliseconds. */
describe("engines on one file while the wall clock is set", () => {
  it.each(STEPS)("neither fire early nor late when it is set by %i ms", async (step) => {
    let set = 0;
    const machine = machineClock() as MachineClock;
    const system: System = { ...realSystem, wall: () => realSystem.wall() + set, machine };
    const openEngine = async () => Engine.open({ store: await open(system), system, logger: silentLogger });
    const definition = defineJob({ type: "waits", timeouts: { attempt: "1s", grace: "0s" } });
    const later = defineJob({ type: "later" });
    const began = performance.now();
    const at = (): number => performance.now() - began;
    const [producer, consumer] = [await openEngine(), await openEngine()];
    const started = Promise.withResolvers<number>();
    const aborted = Promise.withResolvers<number>();
    const ran = Promise.withResolvers<number>();
    const wait = ({ signal }: AttemptContext) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted.resolve(at());
          reject(signal.reason);
        });
        started.resolve(at());
      });
    consumer.work({ processors: [processor(definition, wait), processor(later, () => ran.resolve(at()))] });
    const enqueuedAt = at();
    await producer.enqueue(later, null, { delay: "1s" });
    await producer.enqueue(definition, null);
    const startedAt = await started.promise;
    set = step;
    // One that comes later reads the clocks as they are by then; it sweeps too, and must not fire for the others.
    const latecomer = await openEngine();
    latecomer.work({ processors: [processor(later, () => ran.resolve(at()))] });
    expect(await aborted.promise).toBeGreaterThan(startedAt + 900);
    expect(await ran.promise).toBeGreaterThan(enqueuedAt + 900);
    expect(at()).toBeLessThan(enqueuedAt + 20_000);
    for (const engine of [latecomer, consumer, producer]) await engine.close({ drain: "0s" });
  });

  it("run what was enqueued while it was an hour ahead, after a start with the right time", async () => {
    let set = 3_600_000;
    const system: System = {
      ...realSystem,
      wall: () => realSystem.wall() + set,
      machine: machineClock() as MachineClock,
    };
    const openEngine = async () => Engine.open({ store: await open(system), system, logger: silentLogger });
    const ping = defineJob({ type: "ping" });
    const processors = [processor(ping, () => "pong")];
    const before = await openEngine();
    const { id } = await before.enqueue(ping, null);
    await before.close({ drain: "0s" });
    set = 0;
    const after = await openEngine();
    expect(Math.abs(after.now() - realSystem.wall())).toBeLessThan(60_000);
    const done = new Promise((resolve) => after.on("job.completed", resolve));
    after.work({ processors });
    await done;
    const [row] = await after.store.jobs.load([id]);
    expect(row?.state).toBe("completed");
    await after.close({ drain: "0s" });
  });
});
