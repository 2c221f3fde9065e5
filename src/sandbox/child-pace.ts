import type { Report } from "./protocol.ts";

/** Reports in a burst of this size pass unchanged. After that, one report per millisecond passes. */
const BURST = 100;

/**
 * Reports of which only the latest matters. A handler that reports in a tight loop must not keep its worker busy with
 * reading, so reports are thinned out. The last one is always sent, before the result.
 */
export class Latest {
  readonly #send: (report: Report) => void;
  #tokens = BURST;
  #filledAt = performance.now();
  #pending: Report | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (report: Report) => void) {
    this.#send = send;
  }

  say(report: Report): void {
    const now = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#filledAt));
    this.#filledAt = now;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      this.#pending = undefined;
      this.#send(report);
      return;
    }
    this.#pending = report;
    this.#timer ??= setTimeout(() => this.flush(), 1).unref();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending) this.#send(pending);
  }
}
