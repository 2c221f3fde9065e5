import type { Report } from "./protocol.ts";

/** A burst of this size passes as it is; after it, one report per millisecond. */
const BURST = 100;

/**
 * Reports of which only the latest matters. A handler that reports in a tight loop must not keep its worker busy with
 * reading, so a flood is thinned out; what was said last is always told, in order before the result.
 */
export class Latest {
  readonly #tell: (report: Report) => void;
  #tokens = BURST;
  #filledAt = performance.now();
  #held: Report | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(tell: (report: Report) => void) {
    this.#tell = tell;
  }

  say(report: Report): void {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#filledAt));
    this.#filledAt = now;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      this.#held = undefined;
      this.#tell(report);
      return;
    }
    this.#held = report;
    this.#timer ??= setTimeout(() => this.flush(), 1).unref();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#tell(held);
  }
}
