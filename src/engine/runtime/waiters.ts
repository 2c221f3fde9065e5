import type { JobId, JobRow } from "../../core/job/job.ts";

/** The ended job, a reason to look for oneself, or the word that nothing more will come. */
type Listener = (told: JobRow | "look" | "closed") => void;

/** Who waits in this process for which job to end. */
export class Waiters {
  readonly #waiting = new Map<JobId, Set<Listener>>();
  #isClosed = false;

  add(id: JobId, listener: Listener): () => void {
    const set = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, set.add(listener));
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.#waiting.get(id) === set) this.#waiting.delete(id);
    };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The engine closes: whoever still waits is told so, instead of asking a closed store for ever. */
  close(): void {
    this.#isClosed = true;
    for (const set of [...this.#waiting.values()]) for (const listener of [...set]) listener("closed");
  }

  has(id: JobId): boolean {
    return this.#waiting.size > 0 && this.#waiting.has(id);
  }

  /** The job ended here, so the waiter needs no look into the store. */
  settled(row: JobRow): void {
    for (const listener of [...(this.#waiting.get(row.id) ?? [])]) listener(row);
  }

  /** The job may have ended somewhere: the waiter looks. */
  hint(id: JobId): void {
    for (const listener of [...(this.#waiting.get(id) ?? [])]) listener("look");
  }
}
