/** Shows what can happen to a job, from the same table that the engine will act on. */
import { JOB_STATES } from "../../src/core/job/job.ts";
import { isTerminal, LIFECYCLE } from "../../src/core/job/lifecycle.ts";

console.log("curfew has no engine to start yet. These are the rules that it will keep:\n");
for (const state of JOB_STATES) {
  console.log(isTerminal(state) ? `${state} (the job has ended)` : state);
  for (const { event, to, why } of LIFECYCLE.filter(({ from }) => from === state)) {
    console.log(`  ${event.padEnd(9)} -> ${to.join(" | ")}: ${why}`);
  }
}
