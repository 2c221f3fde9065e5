import type { Instant } from "../../core/time.ts";
import type { Outcome, Store, Unit } from "../../ports/store.ts";

interface Waiting {
  readonly unit: Unit;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

/** Calls that are under way at once: as many as a store has connections to write on. */
const LANES = 2;
const BATCH = 64;

/**
 * Commits single units of deliveries that run at once, those that come while calls are under way together in the next
 * one. A call that fails is repeated unit by unit, so that what is wrong with one is not held against the others.
 */
export class Committer {
  readonly #parts: { readonly store: Pick<Store, "commit">; readonly clock: { now(): Instant } };
  readonly #queue: Waiting[] = [];
  #busy = 0;

  constructor(parts: { readonly store: Pick<Store, "commit">; readonly clock: { now(): Instant } }) {
    this.#parts = parts;
  }

  commit(unit: Unit): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ unit, resolve, reject });
      if (this.#busy < LANES) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#busy += 1;
    while (this.#queue.length > 0) await this.#write(this.#queue.splice(0, BATCH));
    this.#busy -= 1;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { store, clock } = this.#parts;
    try {
      const units = batch.map(({ unit }) => unit);
      const outcomes = await store.commit(units, { now: clock.now() });
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] as Outcome);
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const each of batch) await this.#write([each]);
    }
  }
}
