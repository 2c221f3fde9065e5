/** A pool whose sandboxes are fake: the test says what each child does and when it ends. */
import { expect, onTestFinished } from "vitest";
import { silentLogger } from "../../src/ports/log.ts";
import type { SandboxCall, SandboxRefusal } from "../../src/ports/sandbox.ts";
import type { Carrier, CarrierEvents, Exit } from "../../src/sandbox/carrier.ts";
import { Pool, type PoolOptions } from "../../src/sandbox/pool.ts";
import type { Order, Report } from "../../src/sandbox/protocol.ts";
import type { Look } from "../../src/sandbox/stack.ts";
import { createSimSystem } from "../../src/testing/sim-clock.ts";

export const MEGABYTE = 2 ** 20;

/** A child that does what a test says, and ends when it is killed. */
export class FakeCarrier implements Carrier {
  readonly orders: Order[] = [];
  readonly events: CarrierEvents;
  readonly captures: number[] = [];
  taken = 100 * MEGABYTE;
  isKilled = false;
  isAsleep = false;
  /** What a look at it finds; nothing for as long as it is unset. */
  look: Look | undefined;
  readonly #after: (delay: number, callback: () => void) => void;

  constructor(events: CarrierEvents, after: (delay: number, callback: () => void) => void) {
    this.events = events;
    this.#after = after;
  }

  send(order: Order): void {
    this.orders.push(order);
  }

  kill(): void {
    if (this.isKilled) return;
    this.isKilled = true;
    this.#after(2, () => this.exit({ code: null, signal: "SIGKILL" }));
  }

  exit(exit: Omit<Exit, "isHeardOut"> & Partial<Exit>): void {
    this.events.onExiting();
    this.events.onExit({ isHeardOut: true, ...exit });
  }

  say(...reports: Report[]): void {
    for (const report of reports) this.events.onReport(report);
  }

  memory(): number {
    return this.taken;
  }

  capture(limit: number): Promise<Look> {
    this.captures.push(limit);
    if (this.look) return Promise.resolve(this.look);
    return new Promise((resolve) => this.#after(limit, () => resolve({ because: "it was silent" })));
  }

  silence(): { isAsleep: boolean; says: string } {
    return { isAsleep: this.isAsleep, says: "nothing is seen" };
  }

  get last(): Order | undefined {
    return this.orders.at(-1);
  }
}

export function openPool(options: Partial<PoolOptions> = {}) {
  const system = createSimSystem({ seed: 1, startAt: 0 });
  const carriers: FakeCarrier[] = [];
  const changes: (SandboxRefusal | null)[] = [];
  const host = {
    system,
    logger: silentLogger,
    concurrency: 2,
    changed: (refusal: SandboxRefusal | null) => changes.push(refusal),
  };
  const pool = new Pool(host, {
    module: "file:///module.js",
    type: "a",
    open: (_host, events) => {
      const carrier = new FakeCarrier(events, system.after);
      carriers.push(carrier);
      return carrier;
    },
    size: undefined,
    spare: 0,
    load: 30_000,
    loading: 10,
    jobs: Number.POSITIVE_INFINITY,
    age: Number.POSITIVE_INFINITY,
    memory: 512 * MEGABYTE,
    reaps: false,
    ...options,
  });
  onTestFinished(async () => {
    const closed = pool.close();
    await system.advance(10_000);
    await closed;
  });
  const ready = (index: number) => carriers[index]?.say({ say: "ready", protocol: 1 });
  return {
    system,
    pool,
    carriers,
    changes,
    ready,
    carrier: (index: number) => carriers[index] as FakeCarrier,
  };
}

export function callOf(key: string, calls: unknown[] = [], silence: number | null = null): SandboxCall {
  return {
    key,
    silence,
    job: {
      id: key,
      type: "a",
      queue: "default",
      attempt: 1,
      meta: {},
      payload: "null",
      parentResults: "[]",
      checkpoint: null,
      deadline: 500,
      documentLimit: 1_000_000,
      remaining: 500,
    },
    progress: (fraction) => calls.push(["progress", fraction]),
    checkpoint: async (state) => void calls.push(["checkpoint", state]),
    beat: () => calls.push(["beat"]),
    alive: () => {},
    log: (message) => calls.push(["log", message]),
    cleanupFailed: () => calls.push(["cleanup_failed"]),
    enqueue: async () => ({ id: "child", duplicate: false }),
  };
}

/** A pool with one loaded sandbox and an attempt that it has entered. */
export function openRun(
  { silence = null, ...options }: Partial<PoolOptions> & { silence?: number | null } = {},
  key = "a 1",
) {
  const opened = openPool({ spare: 1, size: 1, ...options });
  opened.ready(0);
  const calls: unknown[] = [];
  expect(opened.pool.admits(key, () => {})).toBe(true);
  const run = opened.pool.run(callOf(key, calls, silence));
  opened.carrier(0).say({ say: "entered", key });
  return { ...opened, run, calls, child: opened.carrier(0) };
}
