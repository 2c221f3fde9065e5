import type { Session } from "./session.ts";
import { byRange } from "./statements.ts";

/** Rows that are written with the same values. The first statement takes the values and the rows; the others only the rows. */
class Group {
  readonly #texts: readonly string[];
  readonly #values: readonly unknown[];
  readonly #rows: number[];

  constructor(texts: readonly string[], values: readonly unknown[], row: number) {
    this.#texts = texts;
    this.#values = values;
    this.#rows = [row];
  }

  takes(texts: readonly string[], values: readonly unknown[], row: number): boolean {
    if (texts !== this.#texts || !areEqual(values, this.#values)) return false;
    this.#rows.push(row);
    return true;
  }

  write(session: Session): void {
    const ranges = rangesOf(this.#rows);
    for (const rows of ranges ?? [[JSON.stringify(this.#rows)]]) {
      for (const [index, text] of this.#texts.entries()) {
        session.run(ranges ? byRange(text) : text, index === 0 ? [...this.#values, ...rows] : rows);
      }
    }
  }
}

/**
 * Writes rows in the order in which they were added. Adjacent rows with equal values share one statement: running a
 * statement costs about as much as writing a row.
 */
export class RowRuns {
  readonly #session: Session;
  #group: Group | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  add(texts: readonly string[], values: readonly unknown[], row: number): void {
    if (this.#group?.takes(texts, values, row)) return;
    this.flush();
    this.#group = new Group(texts, values, row);
  }

  flush(): void {
    this.#group?.write(this.#session);
    this.#group = undefined;
  }
}

/** As many groups as jobs of one commit have instants of their start and end, most often. */
const MOST_GROUPS = 24;

/** Writes rows in any order: rows with equal values share one statement, also if others are between them. */
export class RowGroups {
  readonly #session: Session;
  /** The last used one is the last. */
  #groups: Group[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  add(texts: readonly string[], values: readonly unknown[], row: number): void {
    const groups = this.#groups;
    for (let index = groups.length - 1; index >= 0; index--) {
      const group = groups[index] as Group;
      if (!group.takes(texts, values, row)) continue;
      if (index < groups.length - 1) groups.push(...groups.splice(index, 1));
      return;
    }
    if (groups.length === MOST_GROUPS) groups.shift()?.write(this.#session);
    groups.push(new Group(texts, values, row));
  }

  flush(): void {
    for (const group of this.#groups) group.write(this.#session);
    this.#groups = [];
  }
}

/** Rows that one statement more has to save, on average, from being read from a JSON array. */
const LEAST_RANGE = 8;

/**
 * The first and last of each range of rows without a gap, if these are few: jobs that were enqueued together have one, those of
 * some keys of a fair queue one for each key.
 */
export function rangesOf(rows: readonly number[]): (readonly [number, number])[] | undefined {
  const most = Math.max(1, Math.floor(rows.length / LEAST_RANGE));
  const ranges: (readonly [number, number])[] = [];
  for (let [first, index] = [rows[0] as number, 1]; index <= rows.length; index++) {
    const last = rows[index - 1] as number;
    if (rows[index] === last + 1) continue;
    if (ranges.length === most) return undefined;
    ranges.push([first, last]);
    first = rows[index] as number;
  }
  return ranges;
}

function areEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a === b) return true;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return a.length === b.length;
}
