import type { Sender } from "../../core/job/holder.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import type { Instant } from "../../core/time.ts";

/** What a remote worker says about a job. What it means may depend on the row and the time, so both are handed to it. */
export interface Report {
  readonly id: JobId;
  readonly sender: Sender;
  readonly event: (row: JobRow, now: Instant) => JobEvent;
}

/** What became of a report. A refused one changed nothing, unless the time of the attempt was up before it came. */
export type Reported =
  | { readonly ok: true; readonly row: JobRow }
  | { readonly ok: false; readonly because: "gone" | "lost"; readonly row: JobRow | null };
