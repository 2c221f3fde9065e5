export interface BatcherOptions<Item, Answer> {
  /**
   * Serves the items with one call and returns one answer per item, in order. It does its own retries: if it rejects, every
   * item of the call rejects. An answer may be a promise; then only its own caller waits for it.
   */
  readonly call: (items: readonly Item[]) => Promise<readonly (Answer | Promise<Answer>)[]>;
  /** Returns how many of the waiting items the next call takes, from the front: at least 1. Default 1,000. */
  readonly count?: (waiting: readonly Item[]) => number;
  /** Calls that may run at once. Default 1. */
  readonly concurrency?: number;
  /**
   * From this many items on, a call that would run alone takes half of them, and the next call takes the others at once.
   * So this process prepares one half while the store works on the other. Needs a concurrency of 2. Default: never.
   */
  readonly splitFrom?: number;
  /**
   * Microtasks to wait between two calls, so that a caller which adds again at once joins the next call. Without this,
   * callers in a loop split into two halves that take turns, and each call serves one half. Default 0.
   */
  readonly rejoin?: number;
  /**
   * Starts the first call after an idle time. With `system.soon`, items of all requests that were read in one turn of the event
   * loop share it. Default: after one microtask, so items that one caller adds at once share it.
   */
  readonly soon?: (start: () => void) => void;
  /** Called when no item waits and no call runs. */
  readonly onIdle?: () => void;
}

interface Caller<Answer> {
  resolve(answer: Answer | Promise<Answer>): void;
  reject(error: unknown): void;
}

const MOST_ITEMS = 1_000;

/** Collects items while a call is running and sends them with the next one. */
export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>;
  readonly #concurrency: number;
  /** The item at an index and the caller at the same index belong together. */
  readonly #items: Item[] = [];
  readonly #callers: Caller<Answer>[] = [];
  #running = 0;
  #calls = 0;
  readonly #onIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options;
    this.#concurrency = options.concurrency ?? 1;
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#items.push(item);
      this.#callers.push({ resolve, reject });
      if (this.#running < this.#concurrency && this.#isWorthACall()) void this.#run();
    });
  }

  /** Resolves when every item that was added has been answered by its call. */
  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  async #run(): Promise<void> {
    const { call, rejoin = 0, soon, onIdle } = this.#options;
    this.#running += 1;
    if (soon) await new Promise<void>(soon);
    else await undefined;
    while (this.#items.length > 0) {
      // One splice per call: to shift items one by one is quadratic in the size of a burst.
      const taken = this.#nextCount();
      const items = this.#items.splice(0, taken);
      const callers = this.#callers.splice(0, taken);
      this.#calls += 1;
      try {
        const answers = await call(items);
        for (let index = 0; index < callers.length; index++)
          callers[index]?.resolve(answers[index] as Answer | Promise<Answer>);
      } catch (error) {
        for (const { reject } of callers) reject(error);
      }
      this.#calls -= 1;
      for (let turn = 0; turn < rejoin && this.#items.length > 0; turn++) await undefined;
    }
    this.#running -= 1;
    if (this.#running > 0) return;
    onIdle?.();
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Beside a running call, a second one needs as many items as half of a batch that is split. */
  #isWorthACall(): boolean {
    const { splitFrom } = this.#options;
    return this.#running === 0 || splitFrom === undefined || this.#items.length >= splitFrom / 2;
  }

  #nextCount(): number {
    const { count, splitFrom = Number.POSITIVE_INFINITY } = this.#options;
    const most = count ? count(this.#items) : Math.min(MOST_ITEMS, this.#items.length);
    return this.#calls === 0 && most >= splitFrom ? Math.ceil(most / 2) : most;
  }
}
