/** A handler that ignores its signal is ended at its hard deadline; the next attempt completes. */
import { constant, defineJob, processor, unchecked } from "curfew";
import { check, openStore } from "./store.mjs";

const slow = defineJob({
  type: "slow",
  payload: unchecked(),
  result: unchecked(),
  timeouts: { attempt: "200ms", grace: "100ms" },
  retry: { attempts: 2, backoff: constant({ first: "10ms", jitter: false }) },
});
const engine = await openStore();
engine.work({
  processors: [processor(slow, ({ attempt }) => (attempt === 1 ? new Promise(() => {}) : "second"))],
});
const job = await engine.enqueue(slow, {});
check("result", await job.result({ within: "30s" }), "second");
const { attempt, errors } = await job.load();
check("attempts", [attempt, errors.length, errors[0].forced], [2, 1, true]);
await engine.close();
console.log("ok");
