import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { WorkflowKind } from "../../core/workflow/node.ts";
import type { StepCounts, WorkflowFailure, WorkflowState } from "../../core/workflow/workflow-record.ts";
import type { StoredWorkflow } from "./workflow-records.ts";

export interface WorkflowSummary {
  readonly id: string;
  /** The kind of its outermost node. */
  readonly kind: WorkflowKind;
  readonly name: string | null;
  readonly meta: { readonly [key: string]: Json };
  readonly state: WorkflowState;
  readonly startedAt: Instant;
  readonly endedAt: Instant | null;
  /** When its `timeout` ends. */
  readonly deadline: Instant | null;
  /** The number of its steps, without the callbacks of batches. */
  readonly total: number;
  /** Why it failed. */
  readonly failure: WorkflowFailure | null;
}

/** A workflow with its progress. */
export interface WorkflowView extends WorkflowSummary {
  readonly progress: StepCounts & { readonly total: number };
}

/** Null for a workflow that is not completely stored. */
export function summaryOf({
  name: id,
  body: record,
}: Pick<StoredWorkflow, "name" | "body">): WorkflowSummary | null {
  if (record.phase === "starting" || record.phase === "abandoned") return null;
  const { kind, name, meta, state, startedAt, endedAt, endsAt: deadline, total, failure } = record;
  return { id, kind, name, meta: meta ?? {}, state, startedAt, endedAt, deadline, total, failure };
}
