import type { Workflow, WorkflowStep } from "../../../ojs/replies/wire-replies.ts";

/** Where all steps are shown, they are counted: the workflow's own counts follow a moment later. */
export function countsOf({
  steps = [],
  steps_total,
  steps_completed,
  jobs_failed,
  jobs_cancelled,
}: Workflow) {
  if (steps.length < steps_total)
    return { completed: steps_completed, failed: jobs_failed, cancelled: jobs_cancelled };
  const inState = (state: WorkflowStep["state"]) => steps.filter((step) => step.state === state).length;
  return { completed: inState("completed"), failed: inState("discarded"), cancelled: inState("cancelled") };
}
