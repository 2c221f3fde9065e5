/**
 * An order and the job that handles it are written in one transaction: both exist, or neither does. The same works on
 * PostgreSQL with a `pg` client or the transaction of an ORM as `tx`: see `examples/orms`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { defineJob, openEngine, processor } from "curfew";
import { z } from "zod";

const confirmOrder = defineJob({ type: "order.confirm", payload: z.object({ order: z.string() }) });

const folder = mkdtempSync(join(tmpdir(), "curfew-example-"));
const file = join(folder, "shop.db");
const engine = await openEngine({ store: `sqlite:${file}` });
const shop = new DatabaseSync(file);
shop.exec("create table orders (name text)");

/** The transaction is opened by hand, because an enqueue is asynchronous and a callback for the transaction would not wait for it. */
async function placeOrder(order: string, inStock: boolean): Promise<void> {
  shop.exec("begin immediate");
  try {
    shop.prepare("insert into orders values (?)").run(order);
    await engine.enqueue(confirmOrder, { order }, { tx: shop });
    if (!inStock) throw new Error(`${order} is sold out`);
    shop.exec("commit");
  } catch (error) {
    shop.exec("rollback");
    console.log(`rolled back: ${(error as Error).message}`);
  }
}

await placeOrder("a lamp", true);
await placeOrder("a unicorn", false);

const done = new Promise<void>((resolve) => engine.on("job.completed", () => resolve()));
engine.work({
  processors: [processor(confirmOrder, ({ payload }) => console.log(`confirmed: ${payload.order}`))],
});
await done;
const { available = 0, completed = 0 } = await engine.queues.depth();
console.log(
  `jobs completed ${completed}, waiting ${available}; orders ${shop.prepare("select count(*) as count from orders").get()?.count}`,
);

await engine.close();
shop.close();
rmSync(folder, { recursive: true });
