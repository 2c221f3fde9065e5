import type { JobId, JobRow } from "../../core/job/job.ts";

const MOST = 20_000;

/**
 * Rows of attempts that were started through this process. They only save a read: every write is fenced, and one that
 * is refused is decided again on the row as the store has it.
 */
export class HeldRows {
  readonly #rows = new Map<JobId, JobRow>();

  get(id: JobId): JobRow | undefined {
    return this.#rows.get(id);
  }

  set(row: JobRow): void {
    this.#rows.set(row.id, row);
    if (this.#rows.size <= MOST) return;
    // The oldest goes: a map keeps the order in which keys were added.
    const [oldest] = this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
  }

  delete(id: JobId): void {
    this.#rows.delete(id);
  }
}
