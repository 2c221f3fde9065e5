import { constant, defineJob, unchecked } from "curfew";

export const loop = defineJob({
  type: "loop",
  payload: unchecked(),
  result: unchecked(),
  timeouts: { attempt: "1s", grace: "3s" }, // time for the stack on a busy machine
  retry: { attempts: 2, backoff: constant({ first: "10ms", jitter: false }) },
});
