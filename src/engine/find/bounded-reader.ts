import { sizeOfRow } from "../../core/job/documents/row-size.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { BATCH_LIMIT, type LoadOptions, type Store } from "../../ports/store.ts";

interface Rows {
  readonly jobs: readonly JobRow[];
  readonly cursor: string | null;
}

/** Rows of the first read. Their size says how many to read next. A row has three documents of 1 MB at most. */
const FIRST_ROWS = 4;
/** The most rows of one read: small ones may be followed by large ones. */
const MOST_ROWS = 50;
/** Characters of rows that are loaded by id at once. */
export const PART_SIZE = 4_000_000;

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
  for (const row of rows) size += sizeOfRow(row);
  return size;
}

/**
 * Loads rows by id, in parts of a bounded size: one call of the store for up to 1,000 small rows, and a few large rows at a
 * time. A caller that keeps little of each row uses little memory for any number of ids.
 */
export async function* loadInParts(
  { jobs }: Pick<Store, "jobs">,
  ids: readonly JobId[],
  { isBrief = false, size = PART_SIZE }: LoadOptions = {},
): AsyncGenerator<JobRow | null, void, undefined> {
  for (let from = 0; from < ids.length; ) {
    const part = ids.slice(from, from + BATCH_LIMIT);
    const rows = await jobs.load(part, { size, ...(isBrief && { isBrief }) });
    from += rows.length;
    yield* rows;
  }
}

/** Loads rows by id. They are whole until they have more than `most` characters together, and brief from then on. */
export async function loadWithin(
  store: Pick<Store, "jobs">,
  ids: readonly JobId[],
  most: number,
): Promise<{ readonly rows: ReadonlyMap<JobId, JobRow>; readonly isBrief: (id: JobId) => boolean }> {
  const rows = new Map<JobId, JobRow>();
  let [size, read] = [0, 0];
  for await (const row of loadInParts(store, ids, { size: most })) {
    read += 1;
    if (!row) continue;
    rows.set(row.id, row);
    size += sizeOfRow(row);
    if (size >= most) break;
  }
  const rest = ids.slice(read).filter((id) => !rows.has(id));
  for (const row of await loadBrief(store, rest)) if (row) rows.set(row.id, row);
  const brief = new Set(rest);
  return { rows, isBrief: (id) => brief.has(id) && rows.has(id) };
}

/** Loads brief rows by id, in parts. */
export async function loadBrief(
  store: Pick<Store, "jobs">,
  ids: readonly JobId[],
): Promise<(JobRow | null)[]> {
  const rows: (JobRow | null)[] = [];
  for await (const row of loadInParts(store, ids, { isBrief: true })) rows.push(row && withoutResults(row));
  return rows;
}

/** Without the results of the steps before it, which may be as large as a document. No such row is written. */
function withoutResults(row: JobRow): JobRow {
  if (row.options?.parentResults === undefined) return row;
  const { parentResults: _results, ...options } = row.options;
  return { ...row, options };
}
