import { unchecked } from "../../../src/core/job/job-definition.ts";
import { constant, defineJob } from "../../../src/index.ts";

/** How a job of the crash test behaves; the worker processes and the checker share this. */
export interface CrashPayload {
  readonly n: number;
  readonly behaviour: "quick" | "slow" | "flaky" | "hang";
  /** Milliseconds a slow one takes. */
  readonly takes: number;
}

/** What a worker says about the attempt whose result was accepted. */
export interface CrashResult {
  readonly attempt: number;
  /** Unique for each entry into the handler, so that a verdict can be traced to the attempt that gave it. */
  readonly entry: string;
}

export const ATTEMPTS = 50;

/** Short limits, so that in a minute of crashes many attempts stall, time out and are taken over. */
export const crashJob = defineJob({
  type: "crash.test",
  payload: unchecked<CrashPayload>(),
  result: unchecked<CrashResult>(),
  timeouts: { attempt: "2s", grace: "300ms", total: "none" },
  retry: { attempts: ATTEMPTS, backoff: constant({ first: "50ms", jitter: true }) },
});
