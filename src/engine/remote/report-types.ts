import type { Sender } from "../../core/job/decide/holder.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";

/** A report of a remote worker on a job. The event may depend on the row and the time. */
export interface Report {
  readonly id: JobId;
  readonly sender: Sender;
  readonly event: (row: JobRow, now: Instant) => JobEvent;
}

/** The answer to a report. A refused report changes nothing, except that an attempt whose time is up gets its timeout. */
export type Reported =
  | { readonly ok: true; readonly row: JobRow }
  | { readonly ok: false; readonly because: "gone" | "lost"; readonly row: JobRow | null };
