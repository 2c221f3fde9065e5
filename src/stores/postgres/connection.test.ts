import { describe, expect, it } from "vitest";
import { Connection, Peers } from "./connection.ts";
import { bindSchema, type PooledClient, type PoolLike } from "./session.ts";

/** Timers that fire when the test says so. */
function manualSystem() {
  const timers = new Set<() => void>();
  return {
    after(_delay: number, callback: () => void) {
      timers.add(callback);
      return { cancel: () => timers.delete(callback) };
    },
    fireAll() {
      for (const timer of [...timers]) {
        timers.delete(timer);
        timer();
      }
    },
  };
}

/** A server whose connections answer, except that the first is silent after it was prepared. */
function silentFirst(): PoolLike & { readonly connects: number } {
  const pool = {
    connects: 0,
    async connect(): Promise<PooledClient> {
      pool.connects += 1;
      const isSilent = pool.connects === 1;
      return {
        on: () => undefined,
        release: () => {},
        query: async ({ text }) =>
          isSilent && text === "work" ? new Promise<never>(() => {}) : { rows: [[1, "then", "off"]] },
      };
    },
  };
  return pool;
}

function connect(pool: PoolLike) {
  const system = manualSystem();
  const context = { pool, bind: bindSchema("curfew"), system, peers: new Peers() };
  return { system, connection: new Connection({ ...context, limit: 1_000, prepare: async () => {} }) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a connection whose server does not answer", () => {
  it("fails what waits behind the statement, and nothing that comes later", async () => {
    const pool = silentFirst();
    const { system, connection } = connect(pool);
    const work = () => connection.run({ text: "work" });
    const later: Promise<unknown>[] = [];
    const first = work().catch((error: Error) => {
      later.push(work());
      return error.message;
    });
    const waiting = [work(), work()].map((each) => each.catch((error: Error) => error.message));
    await settled();
    // Each limit is followed by a moment in which an answer that is already here is read.
    system.fireAll();
    system.fireAll();
    const silence = "PostgreSQL: the server does not answer";
    expect(await Promise.all([first, ...waiting])).toEqual([silence, silence, silence]);
    expect(await later[0]).toEqual([[1, "then", "off"]]);
    expect(pool.connects).toBe(2);
  });

  it("makes the idle connections of its store connect again", async () => {
    const pool = silentFirst();
    const { system, connection } = connect(pool);
    const peers = new Peers();
    const context = { pool, bind: bindSchema("curfew"), system, peers };
    const other = new Connection({ ...context, limit: 1_000, prepare: async () => {} });
    await other.run({ text: "prepare" });
    await connection.run({ text: "prepare" });
    expect(pool.connects).toBe(2);
    peers.suspectAll();
    await settled();
    await Promise.all([other.run({ text: "work" }), connection.run({ text: "work" })]);
    expect(pool.connects).toBe(3);
  });
});
