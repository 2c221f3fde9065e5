import type { Timer } from "../../ports/system.ts";
import type { AttemptParts } from "../context.ts";

interface Watched {
  /** When `tick` must be called; Infinity for never. */
  readonly nextAt: number;
  tick(now: number): void;
}

/**
 * Watches the deadlines of all running attempts with one timer, because a timer per job would cost more than the job.
 * An attempt that ends early is not removed: the timer fires, and nothing is due.
 */
export class DeadlineWatch {
  readonly #context: AttemptParts;
  readonly #attempts: () => Iterable<Watched>;
  #armedFor = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(context: AttemptParts, attempts: () => Iterable<Watched>) {
    this.#context = context;
    this.#attempts = attempts;
  }

  /** Makes sure that `look` runs at this instant. */
  until(at: number): void {
    if (at >= this.#armedFor) return;
    this.#timer?.cancel();
    this.#armedFor = at;
    const delay = Math.max(0, at - this.#context.clock.now());
    this.#timer = this.#context.system.after(delay, () => this.look(), { keepAlive: true });
  }

  look(): void {
    this.#armedFor = Number.POSITIVE_INFINITY;
    this.#timer?.cancel();
    const now = this.#context.clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const attempt of this.#attempts()) {
      if (attempt.nextAt <= now) this.#tick(attempt, now);
      if (attempt.nextAt < nextAt) nextAt = attempt.nextAt;
    }
    if (nextAt !== Number.POSITIVE_INFINITY) this.until(nextAt);
  }

  /** One attempt that throws must not keep the others from their deadlines. */
  #tick(attempt: Watched, now: number): void {
    try {
      attempt.tick(now);
    } catch (error) {
      this.#context.logger.error({ error }, "a deadline could not be applied; the sweep will");
    }
  }

  close(): void {
    this.#timer?.cancel();
    this.#armedFor = Number.NEGATIVE_INFINITY;
  }
}
