import type { JobId, JobRow } from "../../core/job/job.ts";

const MOST_ROWS = 20_000;
/** In characters of the documents, because they make a row large. */
const MOST_TEXT = 32_000_000;

interface CachedRow {
  readonly row: JobRow;
  readonly size: number;
}

/**
 * Rows of attempts that this process started for remote workers. They only save reads: every write is fenced, and a refused
 * write is decided again on the stored row. So the oldest rows may be deleted at any time.
 */
export class RowCache {
  readonly #rows = new Map<JobId, CachedRow>();
  #size = 0;

  get(id: JobId): JobRow | undefined {
    return this.#rows.get(id)?.row;
  }

  set(row: JobRow): void {
    const size = sizeOf(row);
    this.#size += size - (this.#rows.get(row.id)?.size ?? 0);
    this.#rows.set(row.id, { row, size });
    // A map keeps the order in which keys were added.
    for (const oldest of this.#rows.keys()) {
      if (this.#rows.size <= MOST_ROWS && this.#size <= MOST_TEXT) return;
      this.delete(oldest);
    }
  }

  delete(id: JobId): void {
    this.#size -= this.#rows.get(id)?.size ?? 0;
    this.#rows.delete(id);
  }
}

function sizeOf({ payload, checkpoint, progress, errors, options }: JobRow): number {
  const notes = (checkpoint?.length ?? 0) + (progress?.length ?? 0);
  // Options and errors are almost always small, so a rough size is enough.
  const extras = (options?.meta || options?.wire ? 1_000 : 0) + (errors?.length ?? 0) * 1_000;
  return payload.length + notes + extras;
}
