import type { Instant } from "../core/time.ts";
import { BATCH_LIMIT, type RecordKey } from "../ports/store.ts";
import type { EngineContext } from "./context.ts";
import { Loop } from "./runtime/loop.ts";

/** The longest rest between two looks, and the shortest: processes that began together drift apart. */
const LONGEST = 1_400;
const SHORTEST = 1_350;
/** For local files: a look costs microseconds, and other processes cannot send hints of timeouts. */
const FILE_EVERY = 100;
/** Queues are looked at this often at most. */
const QUEUES_EVERY = 900;

/** What a look finds work for. */
export interface LookedFor {
  readonly workers: ReadonlySet<{
    readonly queues: readonly string[];
    readonly dryQueues: readonly string[];
  }>;
  /** Serves remote workers, if the engine does. */
  service(): { readonly awaited: Iterable<string> } | undefined;
  readonly sweep: { wakeAt(at: Instant): void };
  readonly dispatcher: { readonly destinations: readonly string[]; wakeAt(at: Instant): void };
}

/** Records behind what is cached: settings, calendars, schemas. */
interface Cached {
  readonly records: readonly RecordKey[];
  /** One of the records is another one than at the last look. */
  recordsChanged(): Promise<void>;
}

/**
 * Looks for work at rest, once for all loops of an engine and in one statement: they sleep until something is due that they
 * know of, until a hint, or until the lookout wakes them. So it bounds the delay after a hint that was lost.
 */
export class Lookout {
  readonly loop: Loop;
  readonly #context: EngineContext;
  readonly #for: LookedFor;
  readonly #cached: Cached;
  #queuesAt = Number.NEGATIVE_INFINITY;
  #versions = "";

  constructor(context: EngineContext, lookedFor: LookedFor, cached: Cached) {
    this.#context = context;
    this.#for = lookedFor;
    this.#cached = cached;
    const { system, logger, storeFailed, ready } = context;
    this.loop = new Loop({
      name: "look",
      system,
      logger,
      round: () => this.#round(),
      onError: (error) => storeFailed(error, "look"),
      // Each worker finds out for itself whether it can claim: readiness is about that.
      onFailing: () => {
        for (const { queues } of lookedFor.workers) for (const queue of queues) ready(queue);
      },
    });
  }

  async #round(): Promise<number> {
    const queues = this.#queues();
    const pages = Math.max(1, Math.ceil(queues.length / BATCH_LIMIT));
    for (let page = 0; page < pages; page++)
      await this.#look(queues.slice(page * BATCH_LIMIT, (page + 1) * BATCH_LIMIT));
    const { store, random, idlePollFactor } = this.#context;
    const rest = SHORTEST + (LONGEST - SHORTEST) * random();
    return (store.capabilities.name === "sqlite" ? FILE_EVERY : rest) * idlePollFactor;
  }

  #queues(): readonly string[] {
    const now = this.#context.system.monotonic();
    if (now - this.#queuesAt < QUEUES_EVERY) return [];
    this.#queuesAt = now;
    const { workers, service } = this.#for;
    return [
      ...new Set([...[...workers].flatMap(({ dryQueues }) => dryQueues), ...(service()?.awaited ?? [])]),
    ];
  }

  async #look(queues: readonly string[]): Promise<void> {
    const { store, ready } = this.#context;
    const { sweep, dispatcher } = this.#for;
    const { records } = this.#cached;
    const looked = await store.look({ queues, destinations: dispatcher.destinations, records });
    if (looked.nextWakeAt !== null) sweep.wakeAt(looked.nextWakeAt);
    if (looked.nextDueAt !== null) dispatcher.wakeAt(looked.nextDueAt);
    for (const queue of looked.ready) ready(queue);
    const versions = looked.versions.join();
    if (versions === this.#versions) return;
    await this.#cached.recordsChanged();
    this.#versions = versions;
  }
}
