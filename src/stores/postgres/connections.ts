import { ConnectionGroup, type ConnectionOptions } from "./connection.ts";

/**
 * A plan may be cached while a table is empty and used when it holds millions of rows. Ours have one right plan each,
 * the one by index, so the others are taken from the planner, and it is asked only once.
 */
const HOT_SETTINGS = [
  "set default_transaction_isolation = 'read committed'",
  "set plan_cache_mode = force_generic_plan",
  "set jit = off",
  "set enable_seqscan = off",
  "set enable_bitmapscan = off",
  "set enable_sort = off",
  "set enable_nestloop = off",
].join("; ");

/**
 * A claim may be forgotten in a crash: the job is then available again, and the salt in its fence keeps the next claim
 * from getting the number that the first one still believes in. What a sweep did is found due again. So neither need
 * wait for the disk.
 */
const RELAXED_SETTINGS = `${HOT_SETTINGS}; set synchronous_commit = off`;

/** People's questions are as different as their tables, so here the planner is left alone. */
const DESK_SETTINGS = "set default_transaction_isolation = 'read committed'";

/** The store's connections, apart by what must not wait for what. They are opened when they are first needed. */
export interface Connections {
  /** Claims, sweeps and other writes that a crash may undo. */
  readonly relaxed: ConnectionGroup;
  readonly enqueue: ConnectionGroup;
  /** Commits, beats and reads by key. */
  readonly write: ConnectionGroup;
  /** Inspection and migrations. */
  readonly inspect: ConnectionGroup;
  close(): Promise<void>;
}

/** How many connections a store opens at most: one of them is for hints. */
export const MOST_CONNECTIONS = 8;

export function createConnections(options: Pick<ConnectionOptions, "pool" | "bind">): Connections {
  const groupOf = (size: number, settings: string) =>
    new ConnectionGroup(size, { ...options, prepare: (session) => session.execute(settings) });
  const relaxed = groupOf(2, RELAXED_SETTINGS);
  const enqueue = groupOf(2, HOT_SETTINGS);
  const write = groupOf(2, HOT_SETTINGS);
  const inspect = groupOf(1, DESK_SETTINGS);
  return {
    relaxed,
    enqueue,
    write,
    inspect: inspect,
    async close() {
      await Promise.all([relaxed, enqueue, write, inspect].map((group) => group.close()));
    },
  };
}
