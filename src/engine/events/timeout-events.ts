import type { Instant } from "../../core/time.ts";
import type { TimeoutId } from "../../core/timeout/timeout.ts";

export interface TimeoutEventDetail {
  readonly name: TimeoutEventName;
  readonly at: Instant;
  readonly timeout: TimeoutId;
  readonly destination: string;
  /** How many deliveries have failed so far. */
  readonly tries: number;
  readonly error?: unknown;
}

/** `timeout.failed`: it is tried again later. `timeout.dead`: it is not, until an operator requeues it. */
export type TimeoutEventName = "timeout.sent" | "timeout.failed" | "timeout.dead";
