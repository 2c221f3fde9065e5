/** postgres.js: `tx` is the `sql` of `begin`. */
import postgres from "postgres";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

export const openShop: OpenShop = async (address) => {
  const sql = postgres(address, { max: 2 });
  return {
    async placeOrder(engine, order, isSoldOut) {
      await sql.begin(async (tx) => {
        await tx`insert into orders (name) values (${order})`;
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => sql.end(),
  };
};
