import type { JobId } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Hint } from "../../ports/store.ts";
import { HINTED_WITHIN } from "../../ports/timeouts.ts";

/** What one call has to tell; a queue is named once, however many of its jobs became available. */
export class HintBatch {
  readonly readyQueues = new Set<string>();
  readonly jobHints: Hint[] = [];
  /** When the first of the new timeouts is due. */
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

/** Those who listen, within this process. */
export class Listeners {
  readonly #listeners = new Set<(hint: Hint) => void>();

  add(onHint: (hint: Hint) => void): AsyncDisposable {
    // A function of our own, so that one listener given twice is heard twice and taken back once.
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

  /** Tells in a microtask of its own: a listener that throws, or calls the store, must not reach into the call it is told of. */
  tell({ readyQueues, jobHints, timeoutsAt }: HintBatch): void {
    if (this.#listeners.size === 0) return;
    if (readyQueues.size + jobHints.length === 0 && timeoutsAt === null) return;
    queueMicrotask(() => {
      for (const queue of readyQueues) this.#tellAll({ ready: queue });
      for (const hint of jobHints) this.#tellAll(hint);
      if (timeoutsAt !== null) this.#tellAll({ timeouts: timeoutsAt });
    });
  }

  #tellAll(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }
}
