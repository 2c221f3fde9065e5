import { describe, expect, it } from "vitest";
import { Connection, ConnectionGroup, Peers } from "./connection.ts";
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

/** A server whose statements are answered when the test says so, and that lets in as many connections as it says. */
function heldServer() {
  const statements: { readonly text: string; answer(): void }[] = [];
  const doors: PromiseWithResolvers<void>[] = [];
  const pool: PoolLike = {
    async connect() {
      const door = Promise.withResolvers<void>();
      doors.push(door);
      await door.promise;
      return {
        on: () => undefined,
        release: () => {},
        query: ({ text }) =>
          text.startsWith("held")
            ? new Promise((resolve) => statements.push({ text, answer: () => resolve({ rows: [[text]] }) }))
            : Promise.resolve({ rows: [[1, "then", "off"]] }),
      };
    },
  };
  const letIn = async () => {
    await settled();
    doors.shift()?.resolve();
    await settled();
  };
  const turnAway = async () => {
    await settled();
    doors.shift()?.reject(new Error("the server is gone"));
    await settled();
  };
  const answer = async (text: string) => {
    await settled();
    statements.find((each) => each.text === text)?.answer();
    await settled();
  };
  return { pool, letIn, turnAway, answer, doors, texts: () => statements.map(({ text }) => text) };
}

function groupBeside(pool: PoolLike) {
  const system = manualSystem();
  const options = { pool, bind: bindSchema("curfew"), system, peers: new Peers(), limit: 1_000 };
  const group = new ConnectionGroup(1, { ...options, prepare: async () => {} });
  const standIn = { group, most: 3 };
  return { system, group, beside: new ConnectionGroup(1, { ...options, prepare: async () => {} }, standIn) };
}

describe("a group whose connection is not open", () => {
  it("gives its work to the stand-in as soon as that is free, without a connection of its own", async () => {
    const { pool, letIn, answer, doors, texts } = heldServer();
    const { group, beside } = groupBeside(pool);
    const first = group.run({ text: "held first" });
    await letIn();
    const second = beside.run({ text: "held second" });
    await settled();
    expect(texts()).toEqual(["held first"]);
    await answer("held first");
    expect(texts()).toEqual(["held first", "held second"]);
    await answer("held second");
    expect(await Promise.all([first, second])).toEqual([[["held first"]], [["held second"]]]);
    expect(doors).toHaveLength(0);
  });

  it("opens one if the stand-in does not become free in time", async () => {
    const { pool, letIn, answer, texts } = heldServer();
    const { system, group, beside } = groupBeside(pool);
    const stuck = group.run({ text: "held stuck" });
    await letIn();
    const work = beside.run({ text: "held work" });
    await settled();
    system.fireAll();
    await letIn();
    expect(texts()).toEqual(["held stuck", "held work"]);
    await answer("held work");
    expect(await work).toEqual([["held work"]]);
    await answer("held stuck");
    await stuck;
  });

  it("tries to open one only once for a piece of work, because each try takes seconds if the server is gone", async () => {
    const { pool, letIn, turnAway, answer, doors } = heldServer();
    const { system, group, beside } = groupBeside(pool);
    const stuck = group.run({ text: "held stuck" });
    await letIn();
    const work = beside.run({ text: "held work" }).catch((error: Error) => error.message);
    await settled();
    system.fireAll();
    await turnAway();
    expect(await work).toContain("the server is gone");
    expect(doors).toHaveLength(0);
    await answer("held stuck");
    await stuck;
  });

  it("rejects work that waits for the stand-in of a store that is closed", async () => {
    const { pool, letIn, answer } = heldServer();
    const { group, beside } = groupBeside(pool);
    const stuck = group.run({ text: "held stuck" });
    await letIn();
    const work = beside.run({ text: "held work" }).catch((error: Error) => error.message);
    await settled();
    const closing = Promise.all([group.close(), beside.close()]);
    await answer("held stuck");
    expect(await work).toBe("The PostgreSQL store is closed");
    await Promise.all([stuck, closing]);
  });
});
