import type { Instant } from "../core/time.ts";
import type { RecordKey } from "./stored-names.ts";

/** What a process at rest asks for, at most `BATCH_LIMIT` of each kind. It changes nothing, and costs one short statement. */
export interface LookRequest {
  /** Queues of which it could run a job. */
  readonly queues: readonly string[];
  /** Destinations of timeouts that it serves. */
  readonly destinations: readonly string[];
  /** Records whose versions it compares with those that it knows. */
  readonly records: readonly RecordKey[];
}

export interface Looked {
  /** When a sweep has something to do; null: never. */
  readonly nextWakeAt: Instant | null;
  /** Those of the queues that have an available job and are not paused, in any order. */
  readonly ready: readonly string[];
  /** `TimeoutStore.nextDueAt` of the destinations; null without destinations. */
  readonly nextDueAt: Instant | null;
  /** The version of each record, 0 for one that does not exist. */
  readonly versions: readonly number[];
}
