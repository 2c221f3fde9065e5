import type { JobId, JobRow } from "../../core/job/job.ts";

/** The finished row; `look`: the job may have ended, read it; `closed`: the engine closes. */
type Listener = (news: JobRow | "look" | "closed") => void;

/** Callers in this process that wait for a job to end. */
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

  /** The engine closes. The callers stop waiting, because the store closes too. */
  close(): void {
    this.#isClosed = true;
    for (const set of [...this.#waiting.values()]) for (const listener of [...set]) listener("closed");
  }

  has(id: JobId): boolean {
    return this.#waiting.size > 0 && this.#waiting.has(id);
  }

  /** The job ended in this process, so the waiters get its row. */
  settled(row: JobRow): void {
    for (const listener of [...(this.#waiting.get(row.id) ?? [])]) listener(row);
  }

  /** The job may have ended in another process, so the waiters read it. */
  hint(id: JobId): void {
    for (const listener of [...(this.#waiting.get(id) ?? [])]) listener("look");
  }
}
