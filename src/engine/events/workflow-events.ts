import type { Instant } from "../../core/time.ts";
import type { WorkflowFailure, WorkflowRecord } from "../../core/workflow/workflow-record.ts";

export type WorkflowEventName =
  | "workflow.started"
  | "workflow.completed"
  | "workflow.failed"
  | "workflow.cancelled";

export interface WorkflowEventDetail {
  readonly name: WorkflowEventName;
  readonly workflow: string;
  readonly kind: WorkflowRecord["kind"];
  /** The name from the start options. */
  readonly title: string | null;
  readonly at: Instant;
  readonly total: number;
  /** Milliseconds from its start to its end. */
  readonly elapsed?: number;
  readonly failure?: WorkflowFailure;
}
