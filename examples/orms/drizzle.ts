/** Drizzle: `tx` is the transaction of `db.transaction`. */
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import pg from "pg";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

const orders = pgTable("orders", { name: text().primaryKey() });

export const openShop: OpenShop = async (address) => {
  const pool = new pg.Pool({ connectionString: address });
  const db = drizzle(pool);
  return {
    async placeOrder(engine, order, isSoldOut) {
      await db.transaction(async (tx) => {
        await tx.insert(orders).values({ name: order });
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => pool.end(),
  };
};
