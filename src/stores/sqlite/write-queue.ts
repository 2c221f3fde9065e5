import type { System } from "../../ports/system.ts";
import type { Session } from "./session.ts";

/** A group takes no further work after this long, in milliseconds, so that the event loop runs again. */
const LONGEST = 3;

interface WaitingWork {
  readonly work: (session: Session) => unknown;
  readonly committed: ((result: unknown) => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** When it was added. */
  readonly from: number;
  /** It failed in a group, or its group failed: it gets a transaction of its own. */
  isAlone: boolean;
}

interface WriteQueueOptions {
  readonly system: Pick<System, "soon" | "monotonic">;
  /** Runs work in one transaction. Waits for a file that is busy, counted from `from`. */
  readonly transact: (work: (session: Session) => void, from: number) => Promise<void>;
}

/**
 * Work that comes in one turn of the event loop shares a transaction: beginning and committing one costs more than most work.
 * It runs in the order in which it came, as if each had its own transaction. Work that fails takes no other work with it.
 */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  #waiting: WaitingWork[] = [];
  #isBusy = false;
  #onIdle: (() => void)[] = [];

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** Resolves with what the work returned, after its commit. `committed` is called at once after the commit. */
  add<Result>(work: (session: Session) => Result, committed?: (result: Result) => void): Promise<Result> {
    const { system } = this.#options;
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        work,
        committed: committed as WaitingWork["committed"],
        resolve: resolve as (result: unknown) => void,
        reject,
        from: system.monotonic(),
        isAlone: false,
      });
      if (this.#isBusy) return;
      this.#isBusy = true;
      system.soon(() => void this.#drain());
    });
  }

  /** Resolves when no work waits. */
  idle(): Promise<void> {
    return this.#isBusy ? new Promise((resolve) => this.#onIdle.push(resolve)) : Promise.resolve();
  }

  async #drain(): Promise<void> {
    const { system } = this.#options;
    while (this.#waiting.length > 0) {
      await this.#writeGroup(this.#waiting[0] as WaitingWork);
      // Others get a turn, and what they ask for joins the next group.
      await new Promise<void>((resolve) => system.soon(resolve));
    }
    this.#isBusy = false;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  async #writeGroup(first: WaitingWork): Promise<void> {
    const results: unknown[] = [];
    let begun = 0;
    try {
      await this.#options.transact((session) => {
        results.length = 0;
        begun = 0;
        for (const { work } of this.#group(first)) {
          begun += 1;
          results.push(work(session));
        }
      }, first.from);
    } catch (error) {
      this.#failed(error, begun, results.length);
      return;
    }
    const written = this.#waiting.splice(0, results.length);
    for (const [index, { committed }] of written.entries()) committed?.(results[index]);
    for (const [index, { resolve }] of written.entries()) resolve(results[index]);
  }

  /** The work of one transaction: as much as came, and fits into the time. */
  *#group(first: WaitingWork): Iterable<WaitingWork> {
    const { system } = this.#options;
    const until = system.monotonic() + LONGEST;
    yield first;
    if (first.isAlone) return;
    for (const waiting of this.#waiting.slice(1)) {
      if (waiting.isAlone || system.monotonic() >= until) return;
      yield waiting;
    }
  }

  /** Nothing of the group is written. Only work that failed without company is told so. */
  #failed(error: unknown, begun: number, done: number): void {
    if (begun <= 1) {
      this.#waiting.shift()?.reject(error);
      return;
    }
    // A commit that failed says nothing about whose fault it was.
    const suspects = done === begun ? this.#waiting.slice(0, begun) : this.#waiting.slice(done, begun);
    for (const waiting of suspects) waiting.isAlone = true;
  }
}
