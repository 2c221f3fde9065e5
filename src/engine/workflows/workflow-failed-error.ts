import { CurfewError } from "../../core/errors.ts";
import type { WorkflowFailure, WorkflowRecord, WorkflowState } from "../../core/workflow/workflow-record.ts";

export class WorkflowFailedError extends CurfewError {
  override readonly name = "WorkflowFailedError";
  readonly state: WorkflowState;
  readonly failure: WorkflowFailure | null;

  constructor(id: string, { state, failure }: Pick<WorkflowRecord, "state" | "failure">) {
    const step = failure?.type === undefined ? "" : `: step ${failure.type} (job ${failure.job})`;
    const why = failure?.message === undefined ? "" : `: ${failure.message}`;
    const late = failure?.reason === "timeout" ? " at its timeout" : "";
    super(
      "workflow_failed",
      `workflow ${id} ${state === "cancelled" ? "was" : "has"} ${state}${late}${step}${why}`,
    );
    this.state = state;
    this.failure = failure;
  }
}
