import { createHash } from "node:crypto";

/** The timeline of a run. It is kept only where somebody will read it: a long run would hold millions of lines. */
export class Trace {
  readonly lines: string[] = [];
  readonly #isKept: boolean;
  readonly #now: () => number;

  constructor(options: { isKept: boolean; now: () => number }) {
    this.#isKept = options.isKept;
    this.#now = options.now;
  }

  /** Whether building a line is worth it. */
  get isKept(): boolean {
    return this.#isKept;
  }

  add(who: string, what: string): void {
    if (!this.#isKept) return;
    this.lines.push(`${(this.#now() / 1_000).toFixed(4).padStart(10)} s  ${who.padEnd(8)} ${what}`);
  }

  hash(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex");
  }
}

/** The end of an id, which is random where its beginning is the time: enough to tell jobs apart in a timeline. */
export function short(id: string): string {
  return id.slice(-6);
}
