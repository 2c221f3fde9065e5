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
    const range = rangeOf(this.#rows);
    const rows = range ?? [JSON.stringify(this.#rows)];
    for (const [index, text] of this.#texts.entries()) {
      session.run(range ? byRange(text) : text, index === 0 ? [...this.#values, ...rows] : rows);
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

/** The first and last of rows without a gap, as jobs that were enqueued together have. */
export function rangeOf(rows: readonly number[]): readonly [number, number] | undefined {
  const first = rows[0] as number;
  for (let index = 1; index < rows.length; index++) if (rows[index] !== first + index) return undefined;
  return [first, first + rows.length - 1];
}

function areEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a === b) return true;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return a.length === b.length;
}
