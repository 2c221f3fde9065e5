import type { Timer } from "../../ports/system.ts";
import type { AttemptParts } from "../context.ts";

/** Something whose next instant is watched. */
interface Watched {
  readonly nextAt: number;
  tick(now: number): void;
}

/**
 * Watches the deadlines of the running attempts with one timer. Adding costs a comparison and removing nothing: an
 * attempt that ended early only causes a look that finds nothing due. A timer per job would cost more than the job.
 */
export class Watch {
  readonly #parts: AttemptParts;
  readonly #attempts: () => Iterable<Watched>;
  #armedFor = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(parts: AttemptParts, attempts: () => Iterable<Watched>) {
    this.#parts = parts;
    this.#attempts = attempts;
  }

  /** Makes sure that somebody looks at `at`. */
  until(at: number): void {
    if (at >= this.#armedFor) return;
    this.#timer?.cancel();
    this.#armedFor = at;
    const delay = Math.max(0, at - this.#parts.clock.now());
    this.#timer = this.#parts.system.after(delay, () => this.look(), { keepAlive: true });
  }

  look(): void {
    this.#armedFor = Number.POSITIVE_INFINITY;
    this.#timer?.cancel();
    const now = this.#parts.clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const attempt of this.#attempts()) {
      if (attempt.nextAt <= now) attempt.tick(now);
      if (attempt.nextAt < nextAt) nextAt = attempt.nextAt;
    }
    if (nextAt !== Number.POSITIVE_INFINITY) this.until(nextAt);
  }

  close(): void {
    this.#timer?.cancel();
    this.#armedFor = Number.NEGATIVE_INFINITY;
  }
}
