/** TypeORM: `tx` is the manager of `dataSource.transaction`. */
import { DataSource, EntitySchema } from "typeorm";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "./shop.ts";

const Order = new EntitySchema<{ name: string }>({
  name: "Order",
  tableName: "orders",
  columns: { name: { type: "text", primary: true } },
});

export const openShop: OpenShop = async (address) => {
  const dataSource = new DataSource({ type: "postgres", url: address, entities: [Order] });
  await dataSource.initialize();
  return {
    async placeOrder(engine, order, isSoldOut) {
      await dataSource.transaction(async (tx) => {
        await tx.insert(Order, { name: order });
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => dataSource.destroy(),
  };
};
