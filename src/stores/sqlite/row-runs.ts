import type { Session } from "./session.ts";
import { byRange } from "./statements.ts";

/**
 * Writes rows, those that follow each other and are written alike in one statement: running a statement costs about as
 * much as writing a row. Rows are written in the order in which they were added.
 */
export class RowRuns {
  readonly #session: Session;
  #texts: readonly string[] = [];
  #values: readonly unknown[] = [];
  #rows: number[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  /** The first statement takes the values and the rows, those after it only the rows. */
  add(texts: readonly string[], values: readonly unknown[], row: number): void {
    if (texts !== this.#texts || !areEqual(values, this.#values)) {
      this.flush();
      this.#texts = texts;
      this.#values = values;
    }
    this.#rows.push(row);
  }

  flush(): void {
    if (this.#rows.length === 0) return;
    const range = rangeOf(this.#rows);
    const rows = range ?? [JSON.stringify(this.#rows)];
    this.#rows = [];
    for (const [index, text] of this.#texts.entries()) {
      this.#session.run(range ? byRange(text) : text, index === 0 ? [...this.#values, ...rows] : rows);
    }
  }
}

/** The first and the last of rows that follow each other without a gap, as those of jobs that were enqueued together do. */
function rangeOf(rows: readonly number[]): readonly [number, number] | undefined {
  const first = rows[0] as number;
  for (let index = 1; index < rows.length; index++) if (rows[index] !== first + index) return undefined;
  return [first, first + rows.length - 1];
}

function areEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return a.length === b.length;
}
