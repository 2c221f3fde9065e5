import type { JobRow } from "../../core/job/job.ts";

/** What became of a report. A refused one changed nothing, unless the time of the attempt was up before it came. */
export type Reported =
  | { readonly ok: true; readonly row: JobRow }
  | { readonly ok: false; readonly because: "gone" | "lost"; readonly row: JobRow | null };
