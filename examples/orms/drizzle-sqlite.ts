/** Drizzle on better-sqlite3: `tx` is the Drizzle database, between `begin immediate` and `commit`. */
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { openSqliteStore } from "../curfew.ts";
import { confirmOrder, type OpenShopAndStore, orderSaga, SoldOut } from "./shop.ts";

const orders = sqliteTable("orders", { name: text().primaryKey() });

export const openShop: OpenShopAndStore = async (file) => {
  const database = new Database(file);
  const tx = drizzle(database);
  return {
    store: await openSqliteStore({ database }),
    async placeOrder(engine, order, isSoldOut) {
      // By hand: an enqueue is asynchronous, and db.transaction() on better-sqlite3 would not wait for it.
      tx.run("begin immediate");
      try {
        tx.insert(orders).values({ name: order }).run();
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
        tx.run("commit");
      } catch (error) {
        tx.run("rollback");
        throw error;
      }
    },
    async close() {
      database.close();
    },
  };
};
