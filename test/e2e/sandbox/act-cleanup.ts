/** A module that exports a hook for all its attempts, beside one that an attempt registers for itself. */
import type { JobDefinition } from "../../../src/core/job/definition.ts";
import { type AttemptContext, processor } from "../../../src/engine/processor.ts";
import { act } from "./jobs.ts";

type Payload = { readonly name: string };

export default processor(act as JobDefinition<unknown, Payload, never>, ({ signal, onCleanup, log }) => {
  onCleanup(() => log("registered hook"));
  return new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => setTimeout(() => reject(signal.reason), 50));
  });
});

export async function onCleanup(context: AttemptContext<Payload>): Promise<void> {
  const { payload, signal, attempt, log, checkpoint } = context;
  log(`exported hook of ${payload.name}`, { kind: signal.reason.kind, attempt });
  await checkpoint("cleaned");
  throw new Error("nothing is left to clean");
}
