/** Prisma: `tx` is the client of `prisma.$transaction`. `npx prisma generate` makes the folder `generated`. */
import { PrismaPg } from "@prisma/adapter-pg";
import { confirmOrder, type OpenShop, orderSaga, SoldOut } from "../shop.ts";
import { PrismaClient } from "./generated/client.ts";

export const openShop: OpenShop = async (address) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: address }) });
  return {
    async placeOrder(engine, order, isSoldOut) {
      await prisma.$transaction(async (tx) => {
        await tx.order.create({ data: { name: order } });
        await engine.enqueue(confirmOrder, { order }, { tx });
        await engine.send(orderSaga, "placed", { order }, { tx });
        await engine.timeouts.insert({ destination: "reminders", dueAt: "1h", payload: order }, { tx });
        if (isSoldOut) throw new SoldOut(order);
      });
    },
    close: () => prisma.$disconnect(),
  };
};
