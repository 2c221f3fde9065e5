import type { EngineContext } from "../context.ts";

/** Fetches that wait for a job. A hint wakes the fetches of its queue, and so does the lookout where a hint was lost. */
export class WaitingFetches {
  readonly #context: EngineContext;
  readonly #waiting = new Map<string, Set<() => void>>();
  #isClosed = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Queues that a fetch waits for. */
  get queues(): Iterable<string> {
    return this.#waiting.keys();
  }

  notify(queue: string): void {
    if (this.#waiting.size === 0) return;
    for (const wake of [...(this.#waiting.get(queue) ?? [])]) wake();
  }

  /** Resolves when one of the queues may have a job, at the latest after `delay` milliseconds. */
  wait(queues: readonly string[], delay: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel();
        for (const queue of queues) {
          const set = this.#waiting.get(queue);
          set?.delete(wake);
          if (set?.size === 0) this.#waiting.delete(queue);
        }
        resolve();
      };
      const timer = this.#context.system.after(delay, wake, { keepAlive: true });
      for (const queue of queues) {
        const set = this.#waiting.get(queue) ?? new Set();
        this.#waiting.set(queue, set.add(wake));
      }
    });
  }

  close(): void {
    this.#isClosed = true;
    this.wakeAll();
  }

  wakeAll(): void {
    for (const set of [...this.#waiting.values()]) for (const wake of [...set]) wake();
  }
}
