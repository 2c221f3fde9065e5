import type { Session } from "./session.ts";
import { byRange } from "./statements.ts";

/**
 * Writes rows in the order in which they were added. Adjacent rows with equal values share one statement: running a
 * statement costs about as much as writing a row.
 */
export class RowRuns {
  readonly #session: Session;
  #texts: readonly string[] = [];
  #values: readonly unknown[] = [];
  #rows: number[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  /** The first statement takes the values and the rows. The others take only the rows. */
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

/** The first and last of rows without a gap, as jobs that were enqueued together have. */
function rangeOf(rows: readonly number[]): readonly [number, number] | undefined {
  const first = rows[0] as number;
  for (let index = 1; index < rows.length; index++) if (rows[index] !== first + index) return undefined;
  return [first, first + rows.length - 1];
}

function areEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return a.length === b.length;
}
