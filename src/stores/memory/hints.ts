import type { JobId } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Hint } from "../../ports/store.ts";
import { HINTED_WITHIN } from "../../ports/timeouts.ts";

/** The hints of one call. A queue appears once, whatever the number of its jobs that became available. */
export class HintBatch {
  readonly readyQueues = new Set<string>();
  readonly jobHints: Hint[] = [];
  /** When the first new timeout is due. */
  timeoutsAt: Instant | null = null;

  ready(queue: string): void {
    this.readyQueues.add(queue);
  }

  settled(id: JobId): void {
    this.jobHints.push({ settled: id });
  }

  lost(id: JobId): void {
    this.jobHints.push({ lost: id });
  }

  timeout(dueAt: Instant, now: Instant): void {
    if (dueAt <= now + HINTED_WITHIN) this.timeoutsAt = earlier(this.timeoutsAt, dueAt);
  }
}

/** The listeners of this process. */
export class Listeners {
  readonly #listeners = new Set<(hint: Hint) => void>();

  add(onHint: (hint: Hint) => void): AsyncDisposable {
    // A new function, so that a callback that is registered twice is called twice and removed once.
    const listener = (hint: Hint) => onHint(hint);
    this.#listeners.add(listener);
    return {
      [Symbol.asyncDispose]: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  clear(): void {
    this.#listeners.clear();
  }

  /**
   * Calls the listeners in a new microtask. A listener that throws or calls the store must not affect the call that
   * caused the hint.
   */
  notify({ readyQueues, jobHints, timeoutsAt }: HintBatch): void {
    if (this.#listeners.size === 0) return;
    if (readyQueues.size + jobHints.length === 0 && timeoutsAt === null) return;
    queueMicrotask(() => {
      for (const queue of readyQueues) this.#notifyAll({ ready: queue });
      for (const hint of jobHints) this.#notifyAll(hint);
      if (timeoutsAt !== null) this.#notifyAll({ timeouts: timeoutsAt });
    });
  }

  #notifyAll(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }
}
