import { CurfewError } from "../../core/errors.ts";
import { backoff } from "../../core/pace.ts";
import type { NewTimeout } from "../../core/timeout/timeout.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";

interface Entry {
  readonly message: NewTimeout;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const TRIES = 4;
const BACKOFF = { first: 25, factor: 4, most: 400 };

/** Messages sent while a store call is under way share the next one; each promise resolves when its own is durable. */
export class Outbox {
  readonly #parts: EngineContext;
  #waiting: Entry[] = [];
  #busy: Promise<void> | undefined;

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  send(message: NewTimeout): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ message, resolve, reject });
      this.#busy ??= this.#drain();
    });
  }

  /** Resolves when every message that was taken in has its answer. */
  async flushed(): Promise<void> {
    await this.#busy;
  }

  async #drain(): Promise<void> {
    // One microtask, so that calls made in the same turn share even the first statement.
    await undefined;
    while (this.#waiting.length > 0) {
      const entries = this.#waiting.splice(0, BATCH_LIMIT);
      try {
        await this.#store(entries.map(({ message }) => message));
        for (const { resolve } of entries) resolve();
      } catch (error) {
        const says = "send: the store did not take the message; send it again with the same id";
        for (const { reject } of entries) reject(new CurfewError("store_failed", says, { cause: error }));
      }
    }
    this.#busy = undefined;
  }

  /** A lost reply is asked for again under the same ids, which the store knows by then. */
  async #store(messages: readonly NewTimeout[]): Promise<void> {
    const { store, clock, system } = this.#parts;
    for (let tries = 1; ; tries++) {
      try {
        await store.timeouts.insert(messages, { now: clock.now() });
        return;
      } catch (error) {
        this.#parts.storeFailed(error, "send");
        if (tries === TRIES) throw error;
        await rest(system, backoff(tries, BACKOFF));
      }
    }
  }
}
