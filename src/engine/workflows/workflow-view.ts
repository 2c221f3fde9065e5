import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { StepCounts, WorkflowFailure, WorkflowState } from "../../core/workflow/workflow-record.ts";
import type { StoredWorkflow } from "./workflow-records.ts";

/** A workflow as it stands. */
export interface WorkflowSummary {
  readonly id: string;
  /** What its outermost node is. */
  readonly kind: "step" | "chain" | "group" | "batch";
  readonly name: string | null;
  readonly meta: { readonly [key: string]: Json };
  readonly state: WorkflowState;
  readonly startedAt: Instant;
  readonly endedAt: Instant | null;
  /** When its `timeout` is over. */
  readonly deadline: Instant | null;
  /** How many steps it has, callbacks of batches not counted. */
  readonly total: number;
  /** Why it failed. */
  readonly failure: WorkflowFailure | null;
}

/** A workflow and how far it is. */
export interface WorkflowView extends WorkflowSummary {
  readonly progress: StepCounts & { readonly total: number };
}

/** Null for one that is not there yet, or was never completely stored. */
export function summaryOf({
  name: id,
  body: record,
}: Pick<StoredWorkflow, "name" | "body">): WorkflowSummary | null {
  if (record.phase === "starting" || record.phase === "abandoned") return null;
  const { kind, name, meta, state, startedAt, endedAt, endsAt: deadline, total, failure } = record;
  return { id, kind, name, meta: meta ?? {}, state, startedAt, endedAt, deadline, total, failure };
}
