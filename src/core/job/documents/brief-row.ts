import type { JobRow } from "../job.ts";

/** Says that there is progress, and nothing of it. */
export const BRIEF_PROGRESS = '{"value":null}';

/**
 * A row without its large documents: the payload is null, there is no checkpoint and no result, and of its progress only
 * that there is some.
 */
export function briefRow(row: JobRow): JobRow {
  const progress = row.progress === null ? null : BRIEF_PROGRESS;
  return { ...row, payload: "null", progress, checkpoint: null, result: null };
}
