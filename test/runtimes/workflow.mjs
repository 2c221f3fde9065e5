/** Two steps side by side, then one that gets their results. */
import { chain, defineJob, group, processor, step, unchecked } from "curfew";
import { check, openStore } from "./store.mjs";

const price = defineJob({ type: "price", payload: unchecked(), result: unchecked() });
const sum = defineJob({ type: "sum", payload: unchecked(), result: unchecked() });
const engine = await openStore();
engine.work({
  processors: [
    processor(price, ({ payload }) => payload * 10),
    processor(sum, ({ parentResults }) => parentResults.reduce((all, one) => all + one, 0)),
  ],
});
const order = chain([group([step(price, 1), step(price, 2)]), step(sum, null)]);
const workflow = await engine.workflows.start(order, { name: "order" });
check("result", await workflow.result({ within: "30s" }), 30);
await engine.close();
console.log("ok");
