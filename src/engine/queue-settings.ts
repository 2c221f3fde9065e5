import type { Rung } from "../core/job/job.ts";
import type { RecordKey, RecordRow, Store } from "../ports/store.ts";

const KIND = "queue";
const PAGE = 500;

/** Queue settings are records in the store, so that all processes resolve the same (SEMANTICS 2). */
export class QueueSettings {
  readonly #store: Store;
  #rungs = new Map<string, { rung: Rung; version: number }>();
  /** Grows whenever a setting changed: policies that were resolved under an older one are resolved anew. */
  #epoch = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  get epoch(): number {
    return this.#epoch;
  }

  rungOf(queue: string): Rung | undefined {
    return this.#rungs.get(queue)?.rung;
  }

  async refresh(): Promise<void> {
    const rungs = new Map<string, { rung: Rung; version: number }>();
    let after: string | null = null;
    for (;;) {
      const page: RecordRow[] = await this.#store.records.list(KIND, after, PAGE);
      for (const record of page)
        rungs.set(record.key[1], { rung: record.body as unknown as Rung, version: record.version });
      if (page.length < PAGE) break;
      after = (page[page.length - 1] as RecordRow).key[1];
    }
    const isSame =
      rungs.size === this.#rungs.size &&
      [...rungs].every(([queue, { version }]) => this.#rungs.get(queue)?.version === version);
    if (!isSame) this.#epoch += 1;
    this.#rungs = rungs;
  }

  static key(queue: string): RecordKey {
    return [KIND, queue];
  }
}
