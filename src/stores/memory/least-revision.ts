import type { JobRow } from "../../core/job/job.ts";

/**
 * The lowest revision of a job and version of a record that may be written now. It is above all that a home wrote before
 * it lost its last writes.
 */
export type LeastRevision = () => number;

export function lifted(row: JobRow, least: number): JobRow {
  return row.rev < least ? { ...row, rev: least } : row;
}
