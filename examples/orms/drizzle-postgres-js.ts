/** Drizzle on postgres.js: the same as on node-postgres. */
import { pgTable, text } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

const orders = pgTable("orders", { name: text().primaryKey() });

export const openShop: OpenShop = async (address) => {
  const sql = postgres(address, { max: 2 });
  const db = drizzle(sql);
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
    close: () => sql.end(),
  };
};
