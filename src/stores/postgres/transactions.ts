import { callerTransaction, refusedBy } from "./caller-transaction.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import { type SchemaBinding, Session, sqlState } from "./session.ts";
import { ENTER_CLUSTER, PROVE_TRANSACTION } from "./statements.ts";

/** Runs work in the caller's transaction, or on the store's connections if there is none, and sends its hints. */
export interface Transactions {
  run<Result>(
    tx: unknown,
    within: (session: Session, hints: HintBatch) => Promise<Result>,
    outside: (hints: HintBatch) => Promise<Result>,
  ): Promise<Result>;
}

export function createTransactions(bind: SchemaBinding, channel: HintChannel): Transactions {
  const entered = new WeakSet<object>();
  return {
    async run(tx, within, outside) {
      channel.assertOpen();
      const hints = new HintBatch();
      if (tx === undefined) {
        const result = await outside(hints);
        channel.notify(hints);
        return result;
      }
      const { client, connection, status } = await callerTransaction(tx);
      if (status === "failed") throw refusedBy("failed");
      const session = new Session(client, bind);
      if (status === "unknown") await prove(session);
      if (!entered.has(connection)) await session.run(ENTER_CLUSTER);
      entered.add(connection);
      // Nothing is repeated in here: after an error, the server refuses every statement until the caller rolls back.
      const result = await within(session, hints);
      await channel.notifyWith(session, hints);
      return result;
    },
  };
}

/** SQLSTATEs of a statement that needs a transaction, outside of one and in a failed one. */
const NO_TRANSACTION = "25P01";
const FAILED_TRANSACTION = "25P02";

/** Refuses a client without a transaction before anything is written: it would be durable at once. */
async function prove(session: Session): Promise<void> {
  await session.run(PROVE_TRANSACTION).catch((cause: unknown) => {
    const state = sqlState(cause);
    if (state === NO_TRANSACTION) throw refusedBy("none", { cause });
    throw state === FAILED_TRANSACTION ? refusedBy("failed", { cause }) : cause;
  });
}
