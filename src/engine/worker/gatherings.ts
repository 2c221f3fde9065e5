import { Gathering } from "../attempt/gathering.ts";
import type { Processor } from "../attempt/processor.ts";
import type { AttemptParts } from "../context.ts";

/** The batches that one worker gathers, by type and queue. */
export class Gatherings {
  readonly #parts: AttemptParts;
  readonly #slots: ReadonlyMap<string, number>;
  readonly #all = new Map<string, Gathering>();

  constructor(
    parts: AttemptParts,
    processors: Iterable<Processor>,
    slots: readonly (readonly [queue: string, concurrency: number])[],
  ) {
    this.#parts = parts;
    this.#slots = new Map(slots);
    for (const { definition, batch } of processors)
      this.#warn(definition.type, definition.queue, batch?.size);
  }

  #warn(type: string, queue: string, size = 0): void {
    const concurrency = this.#slots.get(queue) ?? size;
    if (concurrency >= size) return;
    const text = "the worker has fewer slots than a batch of this type may have jobs; raise its concurrency";
    this.#parts.logger.warn({ type, queue, concurrency, size }, text);
  }

  of({ definition, batch }: Processor, queue: string): Gathering | undefined {
    if (!batch) return undefined;
    const key = `${definition.type} ${queue}`;
    let gathering = this.#all.get(key);
    if (!gathering) {
      gathering = new Gathering(this.#parts, batch, this.#slots.get(queue) ?? batch.size);
      this.#all.set(key, gathering);
    }
    return gathering;
  }

  /** No more jobs come: calls the handlers for those that have joined. */
  close(): void {
    for (const gathering of this.#all.values()) gathering.close();
  }
}
