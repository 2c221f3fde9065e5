import { ConnectionGroup, type ConnectionOptions } from "./connection.ts";

/**
 * A plan may be cached while a table is empty and used when it has millions of rows. Each statement has one right
 * plan, by index. So the other plans are disabled, and each statement is planned once.
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
 * A crash may undo a claim. The job is then available again, and the salt keeps the next claim from getting the same
 * fence. What a sweep did is due again. So neither has to wait for the disk.
 */
const RELAXED_SETTINGS = `${HOT_SETTINGS}; set synchronous_commit = off`;

/** Inspection queries vary, so this connection keeps the planner's defaults. */
const INSPECT_SETTINGS = "set default_transaction_isolation = 'read committed'";

/** The connections of a store, in groups that must not wait for each other. Each is opened at its first use. */
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

/** The most connections that a store opens. One of them is for hints. */
export const MOST_CONNECTIONS = 8;

export function createConnections(options: Pick<ConnectionOptions, "pool" | "bind">): Connections {
  const groupOf = (size: number, settings: string) =>
    new ConnectionGroup(size, { ...options, prepare: (session) => session.execute(settings) });
  const relaxed = groupOf(2, RELAXED_SETTINGS);
  const enqueue = groupOf(2, HOT_SETTINGS);
  const write = groupOf(2, HOT_SETTINGS);
  const inspect = groupOf(1, INSPECT_SETTINGS);
  return {
    relaxed,
    enqueue,
    write,
    inspect,
    async close() {
      await Promise.all([relaxed, enqueue, write, inspect].map((group) => group.close()));
    },
  };
}
