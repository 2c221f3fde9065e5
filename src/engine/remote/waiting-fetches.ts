import type { EngineContext } from "../context.ts";

/** The hints that one fetch gets from its beginning on, so that one which comes during its claim is not lost. */
interface FetchWatch {
  /** Begin to claim: hints that came before do not count any more. */
  claims(): void;
  /** Resolves when one of the queues may have a job, at the latest after `delay` milliseconds. */
  wait(delay: number): Promise<void>;
  /** Resolves after `delay` milliseconds, whatever happens to the queues. */
  rest(delay: number): Promise<void>;
  end(): void;
}

/** Fetches that wait for a job. A hint wakes the fetches of its queue, and so does the lookout where a hint was lost. */
export class WaitingFetches {
  readonly #context: EngineContext;
  /** By queue, what to call at a hint. */
  readonly #watching = new Map<string, Set<() => void>>();
  /** The fetches that wait or rest now. */
  readonly #wakes = new Set<() => void>();
  #isClosed = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Queues that a fetch waits for. */
  get queues(): Iterable<string> {
    return this.#watching.keys();
  }

  notify(queue: string): void {
    if (this.#watching.size === 0) return;
    for (const hear of [...(this.#watching.get(queue) ?? [])]) hear();
  }

  watch(queues: readonly string[]): FetchWatch {
    let isHinted = false;
    let wake: (() => void) | undefined;
    const hear = () => {
      isHinted = true;
      wake?.();
    };
    for (const queue of queues) {
      const set = this.#watching.get(queue) ?? new Set();
      this.#watching.set(queue, set.add(hear));
    }
    return {
      claims() {
        isHinted = false;
      },
      wait: async (delay) => {
        if (isHinted) return;
        await this.#sleep(delay, (wakeUp) => {
          wake = wakeUp;
        });
        wake = undefined;
      },
      rest: (delay) => this.#sleep(delay),
      end: () => {
        for (const queue of queues) {
          const set = this.#watching.get(queue);
          set?.delete(hear);
          if (set?.size === 0) this.#watching.delete(queue);
        }
      },
    };
  }

  #sleep(delay: number, onStart?: (wake: () => void) => void): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel();
        this.#wakes.delete(wake);
        resolve();
      };
      const timer = this.#context.system.after(delay, wake, { keepAlive: true });
      this.#wakes.add(wake);
      onStart?.(wake);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.wakeAll();
  }

  wakeAll(): void {
    for (const wake of [...this.#wakes]) wake();
  }
}
