import { jittered } from "../../core/pace.ts";
import type { EngineContext } from "../context.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";

const EVERY = 60_000;
const LIMIT = 500;

/** Deletes jobs and events whose retention is over, in small batches with a rest between them. */
export class PruneLoop {
  readonly loop: Loop;
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
    this.loop = storeLoop(context, "prune", () => this.round());
  }

  async round(): Promise<number> {
    const { store, clock, random, eventsKept } = this.#context;
    const now = clock.now();
    const pruned = await store.jobs.prune({ now, eventsBefore: now - eventsKept, limit: LIMIT });
    return pruned >= LIMIT ? 50 : jittered(EVERY, random);
  }
}
