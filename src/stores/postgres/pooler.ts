import { refuse } from "../../core/errors.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import type { ConnectionContext } from "./connection.ts";
import { hangUp } from "./dial.ts";
import {
  failure,
  ignore,
  POOL_SESSIONS,
  type PooledClient,
  type Runner,
  Session,
  sqlState,
} from "./session.ts";

type ProbeContext = Pick<ConnectionContext, "pool" | "bind" | "system">;

const ANSWER_LIMIT = 5_500;
const LOOKS = 12;
const BACKEND = { text: "select pg_backend_pid()" };
/** The SQLSTATE with which a pooler of statements refuses a transaction. */
const NO_TRANSACTIONS = "08P01";

/**
 * Whether there is a pooler that gives each transaction another session. Settings of the store would stay behind in
 * sessions of other programs, and its prepared statements would be missing. Nothing is set here, so nothing stays behind.
 *
 * A pooler gives the session of the first client, which is idle, to the transaction of the second; or it gives the first
 * client another session after that. Without a pooler, each client keeps its own. While other programs use the pooler, one look
 * can miss that, so there are several. A client that was told the process of its session itself has no pooler.
 */
export async function isTransactionPooler(context: ProbeContext): Promise<boolean> {
  const clients: PooledClient[] = [];
  let isClean = false;
  try {
    const first = await probe(context, clients);
    if (clients[0]?.processID === pidOf(await first.run(BACKEND))) {
      isClean = true;
      return false;
    }
    const second = await probe(context, clients);
    for (let look = 0; look < LOOKS; look++) if (await areShared(first, second)) return true;
    isClean = true;
    return false;
  } finally {
    for (const client of clients) {
      client.release(!isClean);
      if (!isClean) hangUp(client);
    }
  }
}

async function areShared(first: Session, second: Session): Promise<boolean> {
  const one = await first.run(BACKEND);
  await second.execute("begin").catch((error: unknown) => {
    throw sqlState(error) === NO_TRANSACTIONS ? refusedPooler() : error;
  });
  const two = await second.run(BACKEND);
  if (pidOf(one) === pidOf(two)) return true;
  const again = await first.run(BACKEND);
  if (pidOf(one) !== pidOf(again)) return true;
  await second.execute("rollback");
  return false;
}

function pidOf(rows: readonly (readonly unknown[])[]): unknown {
  return rows[0]?.[0];
}

/** Workers need what a session keeps: prepared statements, settings, and LISTEN for jobs that become ready. */
export function refusedPooler(): Error {
  const fix = `${POOL_SESSIONS}; or name the server itself in hints: "postgres://…"; an engine with role: "producer" needs neither`;
  return refuse("invalid_option", "connection", "a pooler that pools transactions", fix);
}

const DATABASE = {
  text: "select curfew.cluster_identity(), (select oid::text from pg_database where datname = current_database())",
};

/** Hints and looks go to the direct address, so a wrong one would find nothing to do for ever. */
export async function checkDirect(context: ConnectionContext, pooled: Runner): Promise<void> {
  const say = (fix: string) => refuse("invalid_option", "hints", "this address", fix);
  if (await isTransactionPooler(context))
    throw say("it leads to a pooler of transactions too: name the server itself");
  const clients: PooledClient[] = [];
  try {
    const session = await probe(context, clients);
    const [here, there] = await Promise.all([
      pooled.run(DATABASE),
      session.run(DATABASE).catch(noSuchSchema),
    ]);
    if (String(here) !== String(there))
      throw say("it leads to another database than the store: name the same one");
  } finally {
    for (const client of clients) {
      client.release(true);
      hangUp(client);
    }
  }
}

/** A database without the tables of the store is another one. */
function noSuchSchema(error: unknown): SqlRow[] {
  if (sqlState(error) === "3F000" || sqlState(error) === "42883") return [];
  throw error;
}

async function probe({ pool, bind, system }: ProbeContext, clients: PooledClient[]): Promise<Session> {
  const client = await pool.connect().catch((cause: unknown) => {
    throw failure(cause);
  });
  clients.push(client);
  client.on("error", ignore);
  return new Session(client, bind, { system, limit: ANSWER_LIMIT });
}
