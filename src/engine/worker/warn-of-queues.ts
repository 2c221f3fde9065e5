import { nearestName } from "../../core/nearest-name.ts";
import type { Logger } from "../../ports/log.ts";
import type { System } from "../../ports/system.ts";
import type { Processor } from "../attempt/processor.ts";

interface Working {
  readonly queues: readonly string[];
  readonly processors: ReadonlyMap<string, Processor>;
}

/**
 * Warns once about a queue that a worker claims from although no definition names it, and about a definition whose queue
 * no worker of this process claims from. Workers that start in the same turn are checked together.
 */
export class QueueWarnings {
  readonly #logger: Logger;
  readonly #system: Pick<System, "soon">;
  readonly #workers: () => Iterable<Working>;
  readonly #warned = new Set<string>();
  #isWaiting = false;

  constructor(system: Pick<System, "soon">, logger: Logger, workers: () => Iterable<Working>) {
    this.#system = system;
    this.#logger = logger;
    this.#workers = workers;
  }

  /** Checks all workers after the current turn. */
  look(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#system.soon(() => {
      this.#isWaiting = false;
      this.#warn();
    });
  }

  #warn(): void {
    const workers = [...this.#workers()];
    const consumed = new Set(workers.flatMap(({ queues }) => queues));
    const definitions = workers.flatMap(({ processors }) =>
      [...processors.values()].map((one) => one.definition),
    );
    const named = new Set(definitions.map(({ queue }) => queue));
    for (const queue of consumed) {
      if (named.has(queue)) continue;
      const text =
        "a worker takes this queue, and no definition of its processors names it; is the name right?";
      this.#say(`queue ${queue}`, { queue }, nearestName(queue, named), text);
    }
    for (const { type, queue } of definitions) {
      if (consumed.has(queue)) continue;
      const text =
        "no worker of this process takes the queue of this definition; its jobs wait unless another process does";
      this.#say(`definition ${type}`, { type, queue }, nearestName(queue, consumed), text);
    }
  }

  #say(key: string, about: Record<string, string>, meant: string | undefined, text: string): void {
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    this.#logger.warn({ ...about, ...(meant !== undefined && { didYouMean: meant }) }, text);
  }
}
