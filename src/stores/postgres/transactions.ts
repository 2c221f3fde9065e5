import { refuse } from "../../core/errors.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import { type ClientLike, type SchemaBinding, Session } from "./session.ts";
import { ENTER_CLUSTER } from "./statements.ts";

/** Runs work in the caller's transaction, or on the store's connections if there is none, and sends its hints. */
export interface Transactions {
  run<Result>(
    tx: unknown,
    within: (session: Session, hints: HintBatch) => Promise<Result>,
    outside: (hints: HintBatch) => Promise<Result>,
  ): Promise<Result>;
}

export function createTransactions(bind: SchemaBinding, channel: HintChannel): Transactions {
  const entered = new WeakSet<ClientLike>();
  return {
    async run(tx, within, outside) {
      channel.assertOpen();
      const hints = new HintBatch();
      if (tx === undefined) {
        const result = await outside(hints);
        channel.notify(hints);
        return result;
      }
      if (!isClient(tx)) {
        throw refuse(
          "invalid_option",
          "options.tx",
          typeof tx,
          "pass the pg client that began the transaction",
        );
      }
      const session = new Session(tx, bind);
      if (!entered.has(tx)) await session.run(ENTER_CLUSTER);
      entered.add(tx);
      const result = await within(session, hints);
      await channel.notifyWith(session, hints);
      return result;
    },
  };
}

function isClient(value: unknown): value is ClientLike {
  return typeof value === "object" && value !== null && "query" in value && typeof value.query === "function";
}
