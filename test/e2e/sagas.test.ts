import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it } from "vitest";
import {
  createMemoryStore,
  type Engine,
  openEngine,
  type Store,
  silentLogger,
  type Transaction,
} from "../../src/index.ts";
import { race } from "./sagas/race.ts";
import { logSaga } from "./sagas/sagas.ts";
import { storeAddresses } from "./support/addresses.ts";
import { program } from "./support/program.ts";

/** How many timeouts race their revokes, on each store; the promise was checked with 10,000. */
const PAIRS = Number(process.env.CURFEW_RACE_PAIRS ?? 200);
const LIMIT = 300_000 + PAIRS * 80;

const { sqliteAddress, postgresAddress } = storeAddresses("sagas");
/** Two engines on one memory store, which the first of them closes. */
async function openMemory(): Promise<Engine[]> {
  const store = createMemoryStore({ clock: () => Date.now() });
  const shared: Store = { ...store, close: async () => {} };
  return [
    await openEngine({ store, logger: silentLogger }),
    await openEngine({ store: shared, logger: silentLogger }),
  ];
}

async function openTwo(address: string): Promise<Engine[]> {
  return [
    await openEngine({ store: address, logger: silentLogger }),
    await openEngine({ store: address, logger: silentLogger }),
  ];
}

describe.concurrent("SEMANTICS 7.3: a timeout and its revoke at the same time, with two engines", () => {
  it.each([
    ["memory", openMemory],
    ["SQLite", async () => openTwo(await sqliteAddress())],
    ["PostgreSQL", async () => openTwo(await postgresAddress())],
  ] as const)("%s: each ends as exactly one of the two", { timeout: LIMIT }, async (name, open) => {
    const engines = await open();
    const report = await race(engines, PAIRS, 50, name);
    console.log(`race on ${name}: ${JSON.stringify(report)}`);
    await Promise.all(engines.map((engine) => engine.close({ drain: "1s" })));
    expect(report.wrong).toEqual([]);
    expect(report.pairs).toBeGreaterThanOrEqual(PAIRS);
    expect(report.fired + report.revoked).toBe(report.pairs);
    expect(Math.min(report.fired, report.revoked)).toBeGreaterThan(report.pairs / 20);
  });
});

const IDS = ["a", "b", "c", "d", "e"];
const EACH = 30;
const KILLS = 5;

async function startHost(address: string): Promise<ChildProcess> {
  const child = fork(program(new URL("./sagas/host-process.ts", import.meta.url)), [address]);
  await once(child, "message");
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function handledAll(engine: Engine, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    for (;;) {
      const view = await engine.saga(logSaga, id).load();
      if (view?.state.told.length === EACH && view.state.rung.length >= EACH) break;
      // The steps are taken by another process, and nobody tells this one: it has to look.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

describe.concurrent("SEMANTICS 7.4: processes that are killed in the middle of steps", () => {
  it.each([
    ["SQLite", sqliteAddress],
    ["PostgreSQL", postgresAddress],
  ] as const)(
    "%s: every message is handled once and in order, every timeout fires once, no step is lost",
    async (_name, addressOf) => {
      const address = await addressOf();
      const engine = await openEngine({ store: address, logger: silentLogger });
      for (let nth = 0; nth < EACH; nth++) {
        await Promise.all(IDS.map((id) => engine.send(logSaga, "told", { id, nth })));
      }
      for (let kills = 0; kills < KILLS; kills++) {
        const child = await startHost(address);
        // Long enough for some steps, short enough to end in the middle of one.
        await new Promise((resolve) => setTimeout(resolve, 60 + 25 * kills));
        await kill(child);
      }
      const last = await startHost(address);
      await handledAll(engine, IDS);
      await kill(last);
      const numbers = Array.from({ length: EACH }, (_, nth) => nth);
      for (const id of IDS) {
        const view = await engine.saga(logSaga, id).load();
        expect(view?.state.told).toEqual(numbers);
        expect(view?.state.rung.toSorted((a, b) => a - b)).toEqual(numbers);
        expect(view?.pending).toEqual([]);
      }
      await engine.close();
    },
  );
});

/** A connection of the caller's own to the database of an engine. */
interface OwnConnection {
  readonly tx: Transaction;
  run(sql: string): Promise<unknown>;
  close(): Promise<void>;
}

async function ownSqlite(address: string): Promise<OwnConnection> {
  const tx = new DatabaseSync(address.slice("sqlite:".length), { timeout: 20_000 });
  return { tx, run: async (sql) => tx.exec(sql), close: async () => void tx.close() };
}

async function ownPostgres(address: string): Promise<OwnConnection> {
  const tx = new pg.Client({ connectionString: address });
  await tx.connect();
  return { tx, run: (sql) => tx.query(sql), close: () => tx.end() };
}

describe.concurrent("a message sent in a transaction of the caller's own", () => {
  it.each([
    ["SQLite", sqliteAddress, ownSqlite],
    ["PostgreSQL", postgresAddress, ownPostgres],
  ] as const)("%s: exists if and only if the transaction commits", async (_name, addressOf, connect) => {
    const address = await addressOf();
    const engine = await openEngine({ store: address, logger: silentLogger });
    const own = await connect(address);
    for (const [nth, end] of [
      [0, "rollback"],
      [1, "commit"],
    ] as const) {
      await own.run("begin");
      await engine.send(logSaga, "told", { id: "a", nth }, { tx: own.tx });
      await own.run(end);
    }
    await own.close();
    const rung = new Promise<void>((resolve) =>
      engine.on("saga.handled", ({ event }) => event.name === "rung" && resolve()),
    );
    engine.host([logSaga]);
    await rung;
    expect((await engine.saga(logSaga, "a").load())?.state).toEqual({ id: "a", told: [1], rung: [1] });
    await engine.close();
  });
});
