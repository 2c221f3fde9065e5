/** A whole program on the stores that need no server. */
import { defineJob, openEngine, processor, silentLogger, unchecked } from "curfew";

const greet = defineJob({ type: "package.greet", payload: unchecked<string>(), result: unchecked<string>() });

for (const store of ["memory:", "sqlite:embedded.db"]) {
  const engine = await openEngine({ store, logger: silentLogger });
  engine.work({ processors: [processor(greet, ({ payload }) => `Hello, ${payload}!`)] });
  const job = await engine.enqueue(greet, "Ada");
  console.log(`${store.split(":")[0]}: ${await job.result({ within: "1m" })}`);
  await engine.close();
}
