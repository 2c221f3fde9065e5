import type { Instant } from "../../core/time.ts";
import type { TimeoutId } from "../../core/timeout/timeout.ts";

/** What every event about one timeout carries. */
export interface TimeoutEventDetail {
  readonly name: TimeoutEventName;
  readonly at: Instant;
  readonly timeout: TimeoutId;
  readonly destination: string;
  /** How often sending it has failed by now. */
  readonly tries: number;
  readonly error?: unknown;
}

/** `timeout.failed`: it is tried again later. `timeout.dead`: it is not, until somebody requeues it. */
export type TimeoutEventName = "timeout.sent" | "timeout.failed" | "timeout.dead";
