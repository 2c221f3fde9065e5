import { constant, defineJob, unchecked } from "../../src/index.ts";

const retry = { attempts: 3, backoff: constant({ first: "10ms", jitter: false }) };

/** Blocks the event loop of its worker for this many milliseconds. */
export const blocker = defineJob({
  type: "loop.block",
  payload: unchecked<number>(),
  result: unchecked<string>(),
  retry,
});

/** Beats for this many milliseconds, and says what ended it. */
export const innocent = defineJob({
  type: "loop.innocent",
  payload: unchecked<number>(),
  result: unchecked<string>(),
  timeouts: { heartbeat: "5s" },
  retry,
});
