/** Knex: `tx` is the transaction of `knex.transaction`. */
import Knex from "knex";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

export const openShop: OpenShop = async (address) => {
  const knex = Knex({ client: "pg", connection: address, pool: { min: 0, max: 2 } });
  return {
    async placeOrder(engine, order, isSoldOut) {
      await knex.transaction(async (tx) => {
        await tx("orders").insert({ name: order });
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => knex.destroy(),
  };
};
