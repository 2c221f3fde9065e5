/** Kysely on SQLite: `tx` is its transaction. The store is opened with the database of the dialect. */
import Database from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import { openSqliteStore } from "../curfew.ts";
import { confirmOrder, type OpenShopAndStore, orderSaga, SoldOut } from "./shop.ts";

interface Tables {
  orders: { name: string };
}

export const openShop: OpenShopAndStore = async (file) => {
  const database = new Database(file);
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
  return {
    store: await openSqliteStore({ database }),
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
