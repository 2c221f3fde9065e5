import type { Outcome, Unit } from "../../ports/store.ts";

interface Waiting {
  readonly unit: Unit;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

/** Calls at once: a store has at least two connections to write on. */
const CONCURRENCY = 2;
const BATCH = 64;

/**
 * Commits single units of deliveries that run at once. Units that come while calls are under way share the next call. It
 * is no CommitQueue, because a delivery that fails must go back to the dispatcher instead of being tried here. If a call
 * fails, its units are sent one by one: one bad unit must not fail the others.
 */
export class Committer {
  readonly #call: (units: readonly Unit[]) => Promise<Outcome[]>;
  readonly #queue: Waiting[] = [];
  #busy = 0;

  constructor(call: (units: readonly Unit[]) => Promise<Outcome[]>) {
    this.#call = call;
  }

  commit(unit: Unit): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ unit, resolve, reject });
      if (this.#busy < CONCURRENCY) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#busy += 1;
    while (this.#queue.length > 0) await this.#write(this.#queue.splice(0, BATCH));
    this.#busy -= 1;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await this.#call(batch.map(({ unit }) => unit));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] as Outcome);
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const each of batch) await this.#write([each]);
    }
  }
}
