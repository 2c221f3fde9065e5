/** node-postgres: `tx` is the client that began the transaction. */
import pg from "pg";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

export const openShop: OpenShop = async (address) => {
  const pool = new pg.Pool({ connectionString: address });
  return {
    async placeOrder(engine, order, isSoldOut) {
      const tx = await pool.connect();
      try {
        await tx.query("begin");
        await tx.query("insert into orders (name) values ($1)", [order]);
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
        await tx.query("commit");
      } catch (error) {
        await tx.query("rollback");
        throw error;
      } finally {
        tx.release();
      }
    },
    close: () => pool.end(),
  };
};
