/** The other form: a function that gets the engine and gives the options of a worker. */
import { defineJob, type Engine, processor, type WorkOptions } from "../../../src/index.ts";

export default function workers(engine: Engine): WorkOptions {
  const named = defineJob({ type: "test.named" });
  return {
    queues: { default: { concurrency: 1 } },
    processors: [processor(named, () => engine.store.capabilities.name)],
  };
}
