import type { Session } from "./session.ts";

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
    const rows = JSON.stringify(this.#rows);
    this.#rows = [];
    for (const [index, text] of this.#texts.entries()) {
      this.#session.run(text, index === 0 ? [...this.#values, rows] : [rows]);
    }
  }
}

function areEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return a.length === b.length;
}
