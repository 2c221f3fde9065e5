import { nearestName } from "../../core/nearest-name.ts";
import type { Logger } from "../../ports/log.ts";
import type { System } from "../../ports/system.ts";
import type { Processor } from "../attempt/processor.ts";

/** What is looked at of a worker. */
interface Working {
  readonly queues: readonly string[];
  readonly processors: ReadonlyMap<string, Processor>;
}

/**
 * Says once what the workers of a process leave undone: a queue that is worked on although no definition names it, and a
 * definition whose queue no worker takes. Workers that are started together are looked at together.
 */
export class QueueWarnings {
  readonly #logger: Logger;
  readonly #system: Pick<System, "soon">;
  readonly #workers: () => Iterable<Working>;
  readonly #said = new Set<string>();
  #isWaiting = false;

  constructor(system: Pick<System, "soon">, logger: Logger, workers: () => Iterable<Working>) {
    this.#system = system;
    this.#logger = logger;
    this.#workers = workers;
  }

  /** A worker was started. */
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
    const taken = new Set(workers.flatMap(({ queues }) => queues));
    const definitions = workers.flatMap(({ processors }) =>
      [...processors.values()].map((one) => one.definition),
    );
    const named = new Set(definitions.map(({ queue }) => queue));
    for (const queue of taken) {
      if (named.has(queue)) continue;
      const text =
        "a worker takes this queue, and no definition of its processors names it; is the name right?";
      this.#say(`queue ${queue}`, { queue }, nearestName(queue, named), text);
    }
    for (const { type, queue } of definitions) {
      if (taken.has(queue)) continue;
      const text =
        "no worker of this process takes the queue of this definition; its jobs wait unless another process does";
      this.#say(`definition ${type}`, { type, queue }, nearestName(queue, taken), text);
    }
  }

  #say(key: string, about: Record<string, string>, meant: string | undefined, text: string): void {
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.#logger.warn({ ...about, ...(meant !== undefined && { didYouMean: meant }) }, text);
  }
}
