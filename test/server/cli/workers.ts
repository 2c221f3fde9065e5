/** Processors for a server under test: one is quick, one takes as long as its payload says, or until a file is there. */
import { existsSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { defineJob, processor, unchecked } from "../../../src/index.ts";

const quick = defineJob({ type: "test.quick", queue: "other" });
const slow = defineJob({ type: "test.slow", payload: unchecked<{ takes: number; until?: string }>() });

export default [
  processor(quick, () => "done"),
  // Real time: the process under test is drained by a real signal.
  processor(slow, async ({ payload }) => {
    do await wait(payload.takes);
    while (payload.until !== undefined && !existsSync(payload.until));
    return "drained";
  }),
];
