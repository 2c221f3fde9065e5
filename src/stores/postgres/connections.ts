import type { Timer } from "../../ports/system.ts";
import { type ConnectionContext, ConnectionGroup, type StandIn } from "./connection.ts";
import type { Session } from "./session.ts";

/** A server that does not answer within this time counts as lost. These statements take milliseconds. */
const HOT_LIMIT = 5_500;
/** Reads of people and of pages may be slow. */
const INSPECT_LIMIT = 30_000;
/** The server ends a slow statement itself, this long before it counts as lost, so that the connection is kept. */
const SERVER_FIRST = 500;

type Setting = readonly [name: string, value: string];

/** One statement for all of them. `isLocal`: until the end of the transaction. */
function settingText(settings: readonly Setting[], isLocal = false): string {
  return `select ${settings.map(([name, value]) => `set_config('${name}', '${value}', ${isLocal})`).join(", ")}`;
}

/**
 * What the store relies on, whatever the role or the database sets. All of it ends with the connection. If this
 * process vanishes in a transaction, the server ends it.
 */
function limits(limit: number): Setting[] {
  return [
    ["default_transaction_isolation", "read committed"],
    ["statement_timeout", `${limit - SERVER_FIRST}`],
    ["lock_timeout", "0"],
    ["idle_in_transaction_session_timeout", "10000"],
    ["idle_session_timeout", "0"],
  ];
}

/**
 * A plan may be cached while a table is empty and used when it has millions of rows. Each statement has one right
 * plan, by index. So the other plans are disabled, and each statement is planned once.
 */
const PLANS: readonly Setting[] = [
  ["plan_cache_mode", "force_generic_plan"],
  ["jit", "off"],
  ["enable_seqscan", "off"],
  ["enable_bitmapscan", "off"],
  ["enable_sort", "off"],
  ["enable_nestloop", "off"],
];

/** Settings whose writes do not wait for the disk. */
const UNSYNCED: Setting = ["synchronous_commit", "off"];

const HOT_SETTINGS: readonly Setting[] = [...limits(HOT_LIMIT), ...PLANS];

/** For the connection that listens, and that looks while the process rests. Hints may be lost, so they do not wait for the disk. */
export const LISTENER_SETTINGS = settingText([...PLANS, UNSYNCED]);

/**
 * A crash may undo a claim. The job is then available again, and the salt keeps the next claim from getting the same
 * fence. What a sweep did is due again. So neither has to wait for the disk.
 */
const RELAXED_SETTINGS: readonly Setting[] = [...HOT_SETTINGS, UNSYNCED];

/** Inspection queries vary, so this connection keeps the planner's defaults. */
const INSPECT_SETTINGS: readonly Setting[] = limits(INSPECT_LIMIT);

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

/** The most that the store of a producer opens: one to write, and one to inspect and for hints. */
export const PRODUCER_CONNECTIONS = 2;

/** A producer's connections. Behind a pooler of transactions no setting is made: it would stay with other programs. */
export function createProducerConnections(context: ConnectionContext): Connections {
  const groupOf = (settings: readonly Setting[], limit: number) =>
    new ConnectionGroup(1, {
      ...context,
      limit,
      prepare: async (session) => {
        if (!context.isPooled) await session.execute(settingText(settings));
      },
    });
  const write = groupOf(HOT_SETTINGS, HOT_LIMIT);
  // What the second one writes are hints, which may be lost.
  const inspect = groupOf([...INSPECT_SETTINGS, UNSYNCED], INSPECT_LIMIT);
  return {
    relaxed: write,
    enqueue: write,
    write,
    inspect,
    async close() {
      await Promise.all([write.close(), inspect.close()]);
    },
  };
}

/** How many claims and enqueues the connections of commits take in 15 s before they get their own. */
const MOST_RELAXED = 3;
const MOST_ENQUEUED = 100;

/** A connection that nothing used for this long is closed, at the latest after twice as long. */
const UNUSED = 15_000;

/**
 * Behind a pooler of transactions, each transaction makes the settings of the others for itself. They end with it, so nothing
 * stays with other programs.
 */
export function createConnections(context: ConnectionContext): Connections {
  const groupOf = (size: number, settings: readonly Setting[], limit = HOT_LIMIT, standIn?: StandIn) => {
    const local = settingText(settings, true);
    const made = context.isPooled
      ? { ...(limit === HOT_LIMIT && { local }), prepare: async () => {} }
      : { prepare: (session: Session) => session.execute(settingText(settings)) };
    return new ConnectionGroup(size, { ...context, limit, ...made }, standIn);
  };
  const write = groupOf(2, HOT_SETTINGS);
  // A claim on a connection that waits for the disk is slower, and right.
  const relaxed = groupOf(2, RELAXED_SETTINGS, HOT_LIMIT, { group: write, most: MOST_RELAXED });
  const enqueue = groupOf(2, HOT_SETTINGS, HOT_LIMIT, { group: write, most: MOST_ENQUEUED });
  const inspect = groupOf(1, INSPECT_SETTINGS, INSPECT_LIMIT);
  const groups = [relaxed, enqueue, write, inspect];
  let timer: Timer | undefined;
  const restLater = () => {
    timer = context.system.after(UNUSED, () => {
      for (const group of groups) group.rest();
      restLater();
    });
  };
  restLater();
  return {
    relaxed,
    enqueue,
    write,
    inspect,
    async close() {
      timer?.cancel();
      await Promise.all(groups.map((group) => group.close()));
    },
  };
}
