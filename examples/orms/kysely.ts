/** Kysely: `tx` is the transaction of `db.transaction().execute`. */
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

interface Tables {
  orders: { name: string };
}

export const openShop: OpenShop = async (address) => {
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: address }) });
  // Your plugins do not touch the statements of curfew.
  const db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] });
  return {
    async placeOrder(engine, order, isSoldOut) {
      await db.transaction().execute(async (tx) => {
        await tx.insertInto("orders").values({ name: order }).execute();
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => db.destroy(),
  };
};
