/** A module that exports a hook for all its attempts, beside one that an attempt registers for itself. */
import type { JobDefinition } from "../../../src/core/job/job-definition.ts";
import { type CleanupHook, processor } from "../../../src/engine/attempt/processor.ts";
import { act } from "./act-job.ts";

const named = act as JobDefinition<unknown, { readonly name: string }, never>;

export default processor(named, ({ signal, onCleanup, log }) => {
  onCleanup(() => log("registered hook"));
  return new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => setTimeout(() => reject(signal.reason), 50));
  });
});

export const onCleanup: CleanupHook<typeof named> = async (context) => {
  const { payload, signal, attempt, log, checkpoint } = context;
  log(`exported hook of ${payload.name}`, { kind: signal.reason.kind, attempt });
  await checkpoint("cleaned");
  throw new Error("nothing is left to clean");
};
