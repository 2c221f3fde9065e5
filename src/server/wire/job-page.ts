import type { JobRow } from "../../core/job/job.ts";
import { jobText } from "../../ojs/write-job.ts";

/** Characters of jobs in one reply. A page that is full ends early, and its cursor continues. */
const PAGE_SIZE = 2_000_000;
/** Rows of the first read: their sizes say how many to read next. A row has three documents of 1 MB at most. */
const FIRST_ROWS = 2;
/** The most rows of one read: they may hold 3 MB each. */
const MOST_ROWS = 16;
/** The same for rows with one document. */
const MOST_PARTS = 32;
/** Pages that are read at once. More wait, so that many readers do not fill the memory. */
const MOST_READS = 4;

export interface RowsRead<Row = JobRow> {
  readonly jobs: readonly Row[];
  readonly cursor: string | null;
  readonly scanned?: number;
  readonly isIndexed?: true;
}

export interface JobTexts {
  readonly texts: readonly string[];
  /** The end of the page; null if nothing follows. */
  readonly cursor: string | null;
  readonly scanned: number;
  /** An index found them, so all jobs were searched. */
  readonly isIndexed: boolean;
}

type Read<Row = JobRow> = (after: string | null, limit: number) => Promise<RowsRead<Row>>;

/** A function that runs at most `most` reads of large rows at once. The others wait. */
export function limiter(most: number): <Answer>(read: () => Promise<Answer>) => Promise<Answer> {
  let reading = 0;
  const waiting: (() => void)[] = [];
  return async (read) => {
    if (reading >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else reading += 1;
    try {
      return await read();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else reading -= 1;
    }
  };
}

/** Runs a read of large rows when fewer than `MOST_READS` run. */
export const limited = limiter(MOST_READS);

/** Reads a list in steps and keeps a part of each row, so that only the rows of one step are in memory. */
export function readParts<Row, Part>(
  read: Read<Row>,
  after: string | null,
  limit: number,
  partOf: (row: Row) => Part,
): Promise<{ readonly items: Part[]; readonly cursor: string | null }> {
  return limited(async () => {
    const items: Part[] = [];
    let [cursor, rows] = [after, FIRST_ROWS];
    for (;;) {
      const page = await read(cursor, Math.min(limit - items.length, rows));
      for (const row of page.jobs) items.push(partOf(row));
      cursor = page.cursor;
      if (cursor === null || items.length >= limit) return { items, cursor };
      rows = Math.min(4 * rows, MOST_PARTS);
    }
  });
}

/** Reads jobs in steps until there are `limit` of them, their texts fill a page, or a step finds fewer than it may. */
export function readTexts<Row = JobRow>(
  read: Read<Row>,
  after: string | null,
  limit: number,
  show: (row: Row) => string = (row) => jobText(row as JobRow),
): Promise<JobTexts> {
  return limited(async () => {
    const texts: string[] = [];
    let [cursor, size, scanned, rows] = [after, 0, 0, FIRST_ROWS];
    let isIndexed = false;
    for (;;) {
      const step = Math.min(limit - texts.length, rows);
      const page = await read(cursor, step);
      scanned += page.scanned ?? page.jobs.length;
      isIndexed = page.isIndexed === true;
      const fitting = page.jobs.findIndex((row) => {
        const text = show(row);
        size += text.length;
        texts.push(text);
        return size >= PAGE_SIZE;
      });
      if (fitting >= 0 && fitting + 1 < page.jobs.length)
        // Only the store knows the cursor after a row in the middle of a step.
        return { texts, cursor: (await read(cursor, fitting + 1)).cursor, scanned, isIndexed };
      cursor = page.cursor;
      const isShort = page.jobs.length < step;
      if (cursor === null || isShort || texts.length >= limit || size >= PAGE_SIZE)
        return { texts, cursor, scanned, isIndexed };
      rows = nextRows(rows, PAGE_SIZE - size, size / texts.length);
    }
  });
}

/** Rows of the next read, by the room that is left and the size of the rows so far. It grows slowly: sizes may differ. */
export function nextRows(rows: number, room: number, average: number): number {
  return Math.max(1, Math.min(4 * rows, MOST_ROWS, Math.floor(room / average)));
}

/** The cursor after `count` jobs, "end" if there are fewer, or null if they are too large or too many to skip. */
export function skipRows(read: Read, count: number): Promise<string | null> {
  return limited(async () => {
    let cursor: string | null = null;
    let [left, rows, size] = [count, FIRST_ROWS, 0];
    for (let steps = 0; steps < MOST_SKIP_STEPS; steps++) {
      const page: RowsRead = await read(cursor, Math.min(left, rows));
      left -= page.jobs.length;
      for (const row of page.jobs) size += row.payload.length + (row.result?.length ?? 0);
      if (page.cursor === null) return "end";
      cursor = page.cursor;
      if (left <= 0) return cursor;
      // Skipped rows are small nearly always, so their reads grow faster.
      rows = size > PAGE_SIZE ? MOST_ROWS : Math.min(4 * rows, MOST_SKIPPED_ROWS);
    }
    return null;
  });
}

/** Steps and rows of a skip. */
const MOST_SKIP_STEPS = 60;
const MOST_SKIPPED_ROWS = 100;
