import type { JobRow } from "../job.ts";

/** Characters of a row besides its documents, roughly. */
export const ROW_SIZE = 500;

/** Characters of a row, roughly. */
export function sizeOfRow({ payload, result, checkpoint, progress, options }: JobRow): number {
  const notes = (checkpoint?.length ?? 0) + (progress?.length ?? 0);
  return ROW_SIZE + payload.length + (result?.length ?? 0) + notes + (options?.parentResults?.length ?? 0);
}

/** The rows of a load up to the one with which they have `size` characters (see `LoadOptions`). */
export function rowsWithin(rows: readonly (JobRow | null)[], size: number): (JobRow | null)[] {
  let read = 0;
  const last = rows.findIndex((row) => {
    read += row ? sizeOfRow(row) : 0;
    return read >= size;
  });
  return last < 0 ? [...rows] : rows.slice(0, last + 1);
}
