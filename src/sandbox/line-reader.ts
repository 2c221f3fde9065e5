const LONGEST_LINE = 4_000;

/** Splits output into lines. Characters beyond `LONGEST_LINE` are dropped. */
export class LineReader {
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(text: string): void {
    const lines = text.split("\n");
    for (const [index, line] of lines.entries()) {
      this.#rest = (this.#rest + line).slice(0, LONGEST_LINE);
      if (index < lines.length - 1) this.flush();
    }
  }

  /** Emits a line that has no end yet. */
  flush(): void {
    const line = this.#rest.trimEnd();
    this.#rest = "";
    if (line !== "") this.#onLine(line);
  }
}
