import type { System } from "../../ports/system.ts";
import { spanText } from "./times.ts";

const SHOW_AFTER = 1_000;
const EVERY = 200;
const BAR = 24;

/** A progress line on standard error. It appears after a second, and only on a terminal. */
export class Progress {
  /** The instance that owns the line; others print nothing until it ends. */
  static #active: Progress | undefined;
  readonly #system: Pick<System, "monotonic" | "after">;
  readonly #stream: NodeJS.WriteStream | undefined;
  readonly #what: string;
  readonly #startedAt: number;
  #done = 0;
  #total: number | undefined;
  #isShown = false;
  #timer: { cancel(): void } | undefined;

  /** Without a stream nothing is shown. */
  constructor(
    what: string,
    system: Pick<System, "monotonic" | "after">,
    stream: NodeJS.WriteStream | undefined,
  ) {
    this.#what = what;
    this.#system = system;
    this.#stream = stream;
    this.#startedAt = system.monotonic();
    if (!stream?.isTTY || Progress.#active) return;
    Progress.#active = this;
    this.#timer = system.after(SHOW_AFTER, () => this.#draw());
  }

  update(done: number, total?: number): void {
    this.#done = done;
    this.#total = total;
  }

  /** Clears the line. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isShown) this.#stream?.write("\r\u001b[K");
    this.#isShown = false;
    if (Progress.#active === this) Progress.#active = undefined;
  }

  #draw(): void {
    this.#isShown = true;
    const width = (this.#stream?.columns || 80) - 1;
    this.#stream?.write(`\r\u001b[K${this.text().slice(0, width)}`);
    this.#timer = this.#system.after(EVERY, () => this.#draw());
  }

  text(): string {
    const elapsed = spanText(this.#system.monotonic() - this.#startedAt);
    if (this.#total === undefined)
      return this.#done === 0 ? `${this.#what} … ${elapsed}` : `${this.#what} ${this.#done} … ${elapsed}`;
    const share = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total);
    const filled = Math.round(share * BAR);
    const bar = "█".repeat(filled) + "░".repeat(BAR - filled);
    return `${this.#what} ${bar} ${this.#done} of ${this.#total} (${Math.floor(share * 100)} %) ${elapsed}`;
  }
}
