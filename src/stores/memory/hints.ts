import type { JobId } from "../../core/job/job.ts";
import type { Hint } from "../../ports/store.ts";

/** What one call has to tell; a queue is named once, however many of its jobs became available. */
export class HintBatch {
  readonly readyQueues = new Set<string>();
  readonly jobHints: Hint[] = [];

  ready(queue: string): void {
    this.readyQueues.add(queue);
  }

  settled(id: JobId): void {
    this.jobHints.push({ settled: id });
  }

  lost(id: JobId): void {
    this.jobHints.push({ lost: id });
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
  tell({ readyQueues, jobHints }: HintBatch): void {
    if (this.#listeners.size === 0 || readyQueues.size + jobHints.length === 0) return;
    queueMicrotask(() => {
      for (const queue of readyQueues) this.#tellAll({ ready: queue });
      for (const hint of jobHints) this.#tellAll(hint);
    });
  }

  #tellAll(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }
}
