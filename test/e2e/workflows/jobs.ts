import { unchecked } from "../../../src/core/job/job-definition.ts";
import { constant, defineJob } from "../../../src/index.ts";

export interface StepPayload {
  /** Which workflow, and which of its steps. */
  readonly workflow: number;
  readonly step: number;
  readonly takes: number;
  /** Fails for good. */
  readonly fails: boolean;
}

export interface StepOutcome {
  readonly step: number;
  /** Unique for each entry into the handler. */
  readonly entry: string;
  /** The entries whose results it was given. */
  readonly after: readonly string[];
}

export const crashStep = defineJob({
  type: "workflow.step",
  payload: unchecked<StepPayload>(),
  result: unchecked<StepOutcome>(),
  timeouts: { attempt: "1s", grace: "300ms" },
  retry: { attempts: 50, backoff: constant({ first: "20ms" }), except: ["StepFailed"] },
  retention: { completed: "0s" },
});
