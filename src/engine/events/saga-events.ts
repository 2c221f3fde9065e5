import type { IgnoredBecause } from "../../core/saga/step.ts";
import type { Instant } from "../../core/time.ts";

export interface SagaEventDetail {
  readonly name: SagaEventName;
  readonly at: Instant;
  readonly type: string;
  /** The correlation value of the saga. */
  readonly saga: string;
  /** The message, timeout or undo of the step. */
  readonly event: {
    readonly kind: "message" | "timeout" | "undo";
    readonly name: string;
    readonly id: string;
  };
  readonly because?: IgnoredBecause;
  readonly error?: unknown;
}

/** `saga.failed`: a handler threw or took too long; its event is tried again. */
export type SagaEventName =
  | "saga.started"
  | "saga.handled"
  | "saga.completed"
  | "saga.ignored"
  | "saga.not_found"
  | "saga.failed";
