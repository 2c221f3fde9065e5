/** node:sqlite: `tx` is the database, between `begin immediate` and `commit`. The store uses the same copy of SQLite. */
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore } from "../curfew.ts";
import { confirmOrder, type OpenShopAndStore, orderSaga, SoldOut } from "./shop.ts";

export const openShop: OpenShopAndStore = async (file) => {
  const tx = new DatabaseSync(file);
  return {
    store: await openSqliteStore({ database: tx }),
    async placeOrder(engine, order, isSoldOut) {
      tx.exec("begin immediate");
      try {
        tx.prepare("insert into orders (name) values (?)").run(order);
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
        tx.exec("commit");
      } catch (error) {
        tx.exec("rollback");
        throw error;
      }
    },
    async close() {
      tx.close();
    },
  };
};
