import { createHash } from "node:crypto";

/** The timeline of a run. It is kept only where somebody will read it: a long run would hold millions of lines. */
export class Trace {
  readonly lines: string[] = [];
  readonly #isKept: boolean;
  readonly #now: () => number;
  readonly #onLine: ((line: string) => void) | undefined;

  constructor(options: { isKept: boolean; now: () => number; onLine?: (line: string) => void }) {
    this.#isKept = options.isKept;
    this.#now = options.now;
    this.#onLine = options.onLine;
  }

  /** Whether building a line is worth it. */
  get isKept(): boolean {
    return this.#isKept;
  }

  add(who: string, what: string): void {
    if (!this.#isKept) return;
    const line = `${(this.#now() / 1_000).toFixed(4).padStart(10)} s  ${who.padEnd(8)} ${what}`;
    this.lines.push(line);
    this.#onLine?.(line);
  }

  hash(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex");
  }
}

/** The end of an id, which is random where its beginning is the time: enough to tell jobs apart in a timeline. */
export function short(id: string): string {
  return id.slice(-6);
}
