import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Store } from "../../ports/store.ts";

interface Rows {
  readonly jobs: readonly JobRow[];
  readonly cursor: string | null;
}

/** Rows of the first read. Their size says how many to read next. A row has three documents of 1 MB at most. */
const FIRST_ROWS = 4;
/** The most rows of one read: small ones may be followed by large ones. */
const MOST_ROWS = 50;
/** Rows that are loaded by id at once, where little of each is kept. */
const LOADED_ROWS = 2;
/** Characters of a row besides its documents, roughly. */
const ROW_SIZE = 500;

/** Reads rows in steps that are bounded in bytes, and remembers how large they are. */
export class BoundedReader {
  readonly #size: number;
  #rows = FIRST_ROWS;

  /** `size` is how many characters of rows a call of `read` returns, and one step more at most. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Reads until there are `wanted` rows, they are large enough, or a step finds none. */
  async read(
    step: (after: string | null, count: number) => Promise<Rows>,
    after: string | null,
    wanted: number,
  ): Promise<Rows> {
    const jobs: JobRow[] = [];
    let [cursor, size] = [after, 0];
    for (;;) {
      const page = await step(cursor, Math.min(wanted - jobs.length, this.#rows));
      jobs.push(...page.jobs);
      cursor = page.cursor;
      if (page.jobs.length === 0) return { jobs, cursor };
      const read = sizeOf(page.jobs);
      size += read;
      const isFull = size >= this.#size;
      const room = isFull ? this.#size : this.#size - size;
      const fitting = Math.floor((room * page.jobs.length) / read);
      this.#rows = Math.max(1, Math.min(4 * this.#rows, MOST_ROWS, fitting));
      if (isFull || cursor === null || jobs.length >= wanted) return { jobs, cursor };
    }
  }
}

function sizeOf(rows: readonly JobRow[]): number {
  let size = 0;
  for (const { payload, result, checkpoint } of rows)
    size += ROW_SIZE + payload.length + (result?.length ?? 0) + (checkpoint?.length ?? 0);
  return size;
}

/** Loads rows by id, a few at a time. A caller that keeps little of each row uses little memory for any number of ids. */
export async function* loadInParts(
  { jobs }: Pick<Store, "jobs">,
  ids: readonly JobId[],
): AsyncGenerator<JobRow | null, void, undefined> {
  for (let from = 0; from < ids.length; from += LOADED_ROWS)
    yield* await jobs.load(ids.slice(from, from + LOADED_ROWS));
}
