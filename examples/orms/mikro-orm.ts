/** MikroORM: `tx` is the entity manager of `em.transactional`. */
import { defineEntity, MikroORM, p } from "@mikro-orm/postgresql";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

const Order = defineEntity({
  name: "Order",
  tableName: "orders",
  properties: { name: p.text().primary() },
});

export const openShop: OpenShop = async (address) => {
  const orm = await MikroORM.init({ clientUrl: address, entities: [Order] });
  return {
    async placeOrder(engine, order, isSoldOut) {
      await orm.em.fork().transactional(async (tx) => {
        tx.create(Order, { name: order });
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => orm.close(),
  };
};
