import { DatabaseSync } from "node:sqlite";
import Database from "better-sqlite3";
import pg from "pg";
import {
  constant,
  defineJob,
  type Engine,
  openEngine,
  openSqliteStore,
  processor,
  unchecked,
} from "../../src/index.ts";
import {
  type Contender,
  inBatches,
  type OpenContender,
  type OpenSettings,
  type Payload,
  payload,
  payloads,
} from "../contender.ts";

type Retention = "drop" | "keep";

/**
 * `drop` deletes a job in its settle, `keep` keeps it as a finished job for a day. With events, everything that happens to
 * a job is recorded.
 */
export function curfew(
  database: "postgres" | "sqlite",
  retention: Retention,
  events: "off" | "durable" = "off",
): Contender {
  return {
    name: events === "off" ? `curfew ${retention}` : `curfew ${retention} events`,
    role: events === "off" ? "curfew" : "variant",
    database,
    async open(place, settings) {
      if (database === "sqlite") return openOnFile("node:sqlite", place, { retention, events, settings });
      const engine = await openEngine({ store: place, events });
      return openOn(engine, retention, settings, () => clearSchema(place));
    },
  };
}

/** The libraries that the SQLite store can run on. */
export const DRIVERS = { "node:sqlite": DatabaseSync, "better-sqlite3": Database } as const;

/** The SQLite store on one of its libraries. */
export function curfewOn(driver: keyof typeof DRIVERS): Contender {
  return {
    name: `curfew on ${driver}`,
    role: "variant",
    database: "sqlite",
    open: (place, settings) => openOnFile(driver, place, { retention: "drop", events: "off", settings }),
  };
}

interface FileSettings {
  readonly retention: Retention;
  readonly events: "off" | "durable";
  readonly settings: OpenSettings | undefined;
}

/** Everything in this process must use the file with one copy of SQLite, so the driver is named and not left to curfew. */
async function openOnFile(
  driver: keyof typeof DRIVERS,
  path: string,
  { retention, events, settings }: FileSettings,
): Promise<OpenContender> {
  const database = new DRIVERS[driver](path, { timeout: 5_000 });
  const engine = await openEngine({ store: await openSqliteStore({ database }), events });
  const contender = openOn(engine, retention, settings, async () => {
    database.exec(
      "delete from curfew_jobs; delete from curfew_done; delete from curfew_hints; delete from curfew_events",
    );
  });
  const close = async () => {
    await contender.close();
    database.close();
  };
  return { ...contender, close };
}

/**
 * All five timeouts are active. The heartbeat is the built-in one, which the worker keeps for its handlers; a named
 * one is kept by the handler itself, as the short one is.
 */
function define(retention: Retention, { short = false }: OpenSettings = {}) {
  const timeouts = { wait: "2d", attempt: "5m", total: "3d", grace: "30s" } as const;
  return defineJob({
    type: "bench.nothing",
    payload: unchecked<Payload>(),
    timeouts: short ? { ...timeouts, heartbeat: "1s" } : timeouts,
    ...(short && { retry: { attempts: 3, backoff: constant({ first: "0s" }) } }),
    ...(retention === "drop" && { retention: "0s" as const }),
  });
}

function openOn(
  engine: Engine,
  retention: Retention,
  settings: OpenSettings | undefined,
  clear: () => Promise<void>,
): OpenContender {
  const definition = define(retention, settings);
  return {
    enqueue: (count) =>
      inBatches(count, 1_000, 2, (from, to) => engine.enqueueMany(definition, payloads(from, to))),
    async add(n) {
      await engine.enqueue(definition, payload(n));
    },
    delay: (dueAt) => delay(engine, definition, dueAt),
    async work(concurrency, handler) {
      const worker = engine.work({
        queues: { default: { concurrency } },
        processors: [processor(definition, ({ payload: { n }, beat }) => handler(n, beat))],
      });
      return () => worker.close();
    },
    isDrained: async (count) => engine.counters().completed >= count,
    clear,
    close: () => engine.close({ drain: "0s" }),
  };
}

/** Jobs that are due together are added together; those that are not, one by one at the same time. */
async function delay(
  engine: Engine,
  definition: ReturnType<typeof define>,
  dueAt: readonly number[],
): Promise<void> {
  const groups = new Map<number, number[]>();
  for (const [n, at] of dueAt.entries()) {
    const group = groups.get(at);
    if (group) group.push(n);
    else groups.set(at, [n]);
  }
  for (const [at, group] of groups) {
    if (group.length < 100) continue;
    groups.delete(at);
    await inBatches(group.length, 1_000, 2, (from, to) =>
      engine.enqueueMany(definition, group.slice(from, to).map(payload), { at: new Date(at) }),
    );
  }
  const rest = [...groups].flatMap(([at, group]) => group.map((n) => ({ n, at })));
  await inBatches(rest.length, 1, 1_000, async (from) => {
    const { n, at } = rest[from] as (typeof rest)[number];
    await engine.enqueue(definition, payload(n), { at: new Date(at) });
  });
}

async function clearSchema(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("truncate curfew.jobs, curfew.done, curfew.events");
  await client.end();
}
