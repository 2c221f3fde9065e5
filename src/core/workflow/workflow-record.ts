import type { JobId } from "../job/job.ts";
import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { WorkflowKind } from "./node.ts";

export type WorkflowState = "running" | "completed" | "failed" | "cancelled";

export interface WorkflowFailure {
  /** `timeout`: the workflow's timeout ended it. `step`: a step ended without success. */
  readonly reason: "step" | "timeout";
  /** The first step in the order of the definition that failed itself. */
  readonly job?: JobId;
  readonly type?: string;
  readonly message?: string;
}

export interface StepCounts {
  readonly completed: number;
  readonly discarded: number;
  readonly cancelled: number;
}

/**
 * The record of a workflow, besides its jobs and its plan. `starting`: its jobs are being stored, and readers do not
 * see it yet. `abandoned`: that was interrupted. `ending`: its state is final, and its jobs are still being detached.
 * `kept`: only the record remains.
 */
export interface WorkflowRecord {
  readonly state: WorkflowState;
  readonly phase: "starting" | "abandoned" | "running" | "ending" | "kept";
  readonly kind: WorkflowKind;
  readonly name: string | null;
  readonly meta: { readonly [key: string]: Json } | null;
  readonly startedAt: Instant;
  readonly endedAt: Instant | null;
  /** When its `timeout` is over. */
  readonly endsAt: Instant | null;
  /** The job that is woken at its end. */
  readonly end: JobId;
  readonly total: number;
  readonly counts: StepCounts | null;
  readonly failure: WorkflowFailure | null;
  /** False if the result was too large, or there is none. */
  readonly isResultKept: boolean;
  /** How many milliseconds it is kept after its end. */
  readonly retention: { readonly completed: number; readonly other: number };
}

/** When the record of an ended workflow may be deleted. */
export function forgetAt({ state, endedAt, retention }: WorkflowRecord): Instant {
  return (endedAt ?? 0) + (state === "completed" ? retention.completed : retention.other);
}
