import { refuse } from "../../core/errors.ts";
import { reachOf } from "../../ports/capabilities.ts";
import type { Store } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import { checkUnits } from "../check-batch.ts";
import { groupScope, transactionScope, writeUnits } from "./commit.ts";
import { Peers } from "./connection.ts";
import {
  createConnections,
  createProducerConnections,
  MOST_CONNECTIONS,
  PRODUCER_CONNECTIONS,
} from "./connections.ts";
import { diagnoseServer } from "./diagnose.ts";
import { BorrowedPool, OwnPool } from "./dial.ts";
import { HintChannel } from "./hints.ts";
import { createInspector } from "./inspector.ts";
import { createJobStore } from "./job-store.ts";
import { checkDurability, migrate } from "./migrate.ts";
import { checkDirect, isTransactionPooler, refusedPooler } from "./pooler.ts";
import { createRecordStore } from "./record-store.ts";
import { checkSchemaName } from "./schema-name.ts";
import { createSearchIndex } from "./search-index.ts";
import { bindSchema, type PoolLike } from "./session.ts";
import { CLOCK } from "./statements.ts";
import { createTimeoutStore } from "./timeout-store.ts";
import { createTransactions } from "./transactions.ts";

export interface PostgresStoreOptions {
  /**
   * A connection string, which may name several hosts, or a pool of the `pg` package. The store keeps up to 8
   * connections with their own settings and prepared statements until it is closed. A pool must be that large; the
   * store does not end it. A pooler in between must pool sessions: one of transactions is refused, unless the store is
   * for a producer or has an address for `hints`.
   */
  readonly connection: string | PoolLike;
  /** The schema of the tables. It is created if it is missing. */
  readonly schema?: string;
  /**
   * The address of the server itself, for a worker behind a pooler of transactions: one connection goes there, for hints and
   * for what a process looks for at rest. It must lead to the same database. Default: `connection`.
   */
  readonly hints?: string | undefined;
  /** `"producer"`: for an engine with this role. The store keeps up to 2 connections, and gives no hints. */
  readonly role?: "producer" | undefined;
  readonly system: Pick<System, "after" | "monotonic">;
}

/** Opens a store in a PostgreSQL database (15 or newer), and applies pending migrations. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { connection, schema = "curfew", system, role, hints } = options;
  checkSchemaName(schema);
  checkPool(connection, role ? PRODUCER_CONNECTIONS : MOST_CONNECTIONS);
  const own = typeof connection === "string" ? await OwnPool.load(connection) : undefined;
  const pool = own ?? new BorrowedPool(connection as PoolLike, system);
  const shared = { pool, bind: bindSchema(schema), system, peers: new Peers() };
  const isPooled = await isTransactionPooler(shared).catch((error: unknown) => {
    own?.close();
    throw error;
  });
  const context = { ...shared, isPooled };
  const connections = role ? createProducerConnections(context) : createConnections(context);
  const direct = hints !== undefined && !role ? await OwnPool.load(hints) : undefined;
  const straight = direct ? { ...context, pool: direct, isPooled: false } : context;
  const end = () => {
    own?.close();
    direct?.close();
  };
  try {
    if (isPooled && !role && !direct) throw refusedPooler();
    await checkDurability(role ? connections.write : connections.inspect);
    await migrate(connections.inspect, schema);
    if (direct) await checkDirect(straight, connections.inspect);
  } catch (error) {
    await connections.close();
    end();
    throw error;
  }
  const channel = new HintChannel(schema, straight, role && connections.inspect);
  const transactions = createTransactions(context.bind, channel);
  const scope = groupScope(connections.write);
  // The connections of claims do not wait for the disk. A crash may undo a relaxed write together with its claim.
  const relaxedScope = groupScope(connections.relaxed);
  return {
    capabilities: { name: "postgres", durable: "ack", tx: true, hints: "push", ...reachOf(1) },
    jobs: createJobStore(connections, channel, transactions),
    records: createRecordStore(connections.write, () => channel.assertOpen()),
    timeouts: createTimeoutStore(connections, channel, transactions),
    inspect: createInspector(connections.inspect, system),
    search: createSearchIndex(connections.inspect),
    async clock() {
      return (await connections.write.run(CLOCK))[0]?.[0] as number;
    },
    look: (request) => channel.look(request),
    async commit(units, { now, tx, relaxed }) {
      checkUnits(units, now);
      return transactions.run(
        tx,
        (session, hints) => writeUnits(transactionScope(session), units, now, hints),
        (hints) => writeUnits(relaxed ? relaxedScope : scope, units, now, hints),
      );
    },
    listen: (onHint) => channel.listen(onHint),
    diagnose: () =>
      diagnoseServer({
        runner: connections.inspect,
        schema,
        pool: typeof connection === "string" ? pool : undefined,
      }),
    async close() {
      await Promise.all([channel.close(), connections.close()]);
      end();
    },
  };
}

/** With a smaller pool, the store would wait for a client that it holds itself. */
function checkPool(connection: string | PoolLike, needed: number): void {
  if (typeof connection === "string") return;
  const most = (connection as { options?: { max?: unknown } }).options?.max;
  if (typeof most !== "number" || most >= needed) return;
  throw refuse("invalid_option", "connection.max", most, `give the store a pool of at least ${needed}`);
}
