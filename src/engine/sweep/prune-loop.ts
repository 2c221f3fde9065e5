import { jittered } from "../../core/pace.ts";
import type { EngineContext } from "../context.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";

const EVERY = 60_000;
const LIMIT = 500;

/** Deletes what retention no longer keeps, in small batches with a rest between them. */
export class PruneLoop {
  readonly loop: Loop;
  readonly #parts: EngineContext;

  constructor(parts: EngineContext) {
    this.#parts = parts;
    this.loop = storeLoop(parts, "prune", () => this.round());
  }

  async round(): Promise<number> {
    const { store, clock, random, eventsKept } = this.#parts;
    const now = clock.now();
    const pruned = await store.jobs.prune({ now, eventsBefore: now - eventsKept, limit: LIMIT });
    return pruned >= LIMIT ? 50 : jittered(EVERY, random);
  }
}
