import type { KeyUse } from "../../limit/limit.ts";
import type { Instant } from "../../time.ts";
import type { JobRow } from "../job.ts";

/** The jobs that hold what another job waits for: slots of a limit, or of a queue with a concurrency. */
export interface HeldSlots extends KeyUse {
  /** When the first remembered start no longer counts. Of many starts, only the first are read. */
  readonly nextAt: Instant | null;
  /** Some of the active jobs that hold a slot. */
  readonly jobs: readonly JobRow[];
}
