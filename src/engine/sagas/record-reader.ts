import { BATCH_LIMIT, type RecordKey, type RecordRow, type RecordStore } from "../../ports/store.ts";

interface Waiting {
  readonly key: RecordKey;
  readonly resolve: (row: RecordRow | null) => void;
  readonly reject: (error: unknown) => void;
}

/** Reads records that are asked for while a call is under way with the next one; none is older than its request. */
export class RecordReader {
  readonly #records: Pick<RecordStore, "load">;
  #waiting: Waiting[] = [];
  #isBusy = false;

  constructor(records: Pick<RecordStore, "load">) {
    this.#records = records;
  }

  load(key: RecordKey): Promise<RecordRow | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#isBusy) return;
      this.#isBusy = true;
      void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // One microtask, so that requests made in the same turn share even the first call.
    await undefined;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_LIMIT);
      try {
        const rows = await this.#records.load(batch.map(({ key }) => key));
        for (const [index, { resolve }] of batch.entries()) resolve(rows[index] ?? null);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isBusy = false;
  }
}
