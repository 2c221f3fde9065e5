import { constant, defineJob, unchecked } from "../../../src/index.ts";

/** A job that takes as long as its payload says, and beats meanwhile. */
export const take = defineJob({
  type: "remote.take",
  payload: unchecked<{ readonly milliseconds: number }>(),
  result: unchecked<{ readonly pid: number; readonly attempt: number }>(),
  timeouts: { heartbeat: "5s", attempt: "2m" },
  retry: { attempts: 3, backoff: constant({ first: "10ms", jitter: false }) },
});
