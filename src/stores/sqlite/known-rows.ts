import type { JobId } from "../../core/job/job.ts";

/** More than the workers of one process hold at a time. Older ones are found by their id. */
const MOST = 8_192;

/**
 * The numbers of rows by the ids of their jobs. Finding a job by its number costs half as much as by its id. A number is only a
 * guess: the row may be gone, and another job may have its number. So a reader compares the id of the row that it finds.
 */
export class KnownRows {
  readonly #rows = new Map<JobId, number>();

  set(id: JobId, row: number): void {
    this.#rows.set(id, row);
    if (this.#rows.size <= MOST) return;
    for (const oldest of this.#rows.keys()) {
      this.#rows.delete(oldest);
      return;
    }
  }

  /** Forgets what it returns: most jobs are written once after their claim. Undefined unless it knows all of them. */
  take(ids: readonly JobId[]): number[] | undefined {
    const rows: number[] = [];
    for (const id of ids) {
      const row = this.#rows.get(id);
      if (row === undefined) return undefined;
      rows.push(row);
    }
    for (const id of ids) this.#rows.delete(id);
    return rows;
  }
}
