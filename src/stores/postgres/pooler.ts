import { refuse } from "../../core/errors.ts";
import type { ConnectionContext } from "./connection.ts";
import { hangUp } from "./dial.ts";
import { failure, ignore, POOL_SESSIONS, type PooledClient, Session, sqlState } from "./session.ts";

const ANSWER_LIMIT = 5_500;
const BACKEND = { text: "select pg_backend_pid()" };
/** The SQLSTATE with which a pooler of statements refuses a transaction. */
const NO_TRANSACTIONS = "08P01";

/**
 * Refuses a pooler that gives each transaction another session. Settings of the store would stay behind in sessions of
 * other programs, and its prepared statements would be missing. Nothing is set here, so nothing stays behind.
 *
 * A pooler gives the session of the first client, which is idle, to the transaction of the second; or it gives the first
 * client another session after that. Without a pooler, each client keeps its own.
 */
export async function refuseTransactionPooler(context: ConnectionContext): Promise<void> {
  const clients: PooledClient[] = [];
  let isClean = false;
  try {
    const first = await probe(context, clients);
    await comparePids(first, await probe(context, clients));
    isClean = true;
  } finally {
    for (const client of clients) {
      client.release(!isClean);
      if (!isClean) hangUp(client);
    }
  }
}

async function comparePids(first: Session, second: Session): Promise<void> {
  const one = await first.run(BACKEND);
  await second.execute("begin").catch((error: unknown) => {
    throw sqlState(error) === NO_TRANSACTIONS ? refusal() : error;
  });
  const two = await second.run(BACKEND);
  if (pidOf(one) === pidOf(two)) throw refusal();
  const again = await first.run(BACKEND);
  if (pidOf(one) !== pidOf(again)) throw refusal();
  await second.execute("rollback");
}

function pidOf(rows: readonly (readonly unknown[])[]): unknown {
  return rows[0]?.[0];
}

function refusal(): Error {
  return refuse("invalid_option", "connection", "a pooler that pools transactions", POOL_SESSIONS);
}

async function probe({ pool, bind, system }: ConnectionContext, clients: PooledClient[]): Promise<Session> {
  const client = await pool.connect().catch((cause: unknown) => {
    throw failure(cause);
  });
  clients.push(client);
  client.on("error", ignore);
  return new Session(client, bind, { system, limit: ANSWER_LIMIT });
}
