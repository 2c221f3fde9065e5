import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { MOST_STUCK, type ReportedStuck } from "../../core/worker/worker-report.ts";
import type { AttemptParts } from "../context.ts";

interface StuckAttempt {
  readonly row: JobRow;
}

/**
 * Handlers that ran past their verdict. They cannot be ended from within the process, so they are counted, and a
 * worker that carries too many of them takes no more jobs and says so (SEMANTICS 3.7).
 */
export class StuckHandlers {
  readonly #parts: AttemptParts;
  readonly #worker: string;
  readonly #limit: number;
  /** By attempt, with the instant of its verdict. */
  readonly #attempts = new Map<StuckAttempt, Instant>();
  #isTold = false;

  constructor(parts: AttemptParts, worker: string, limit: number) {
    this.#parts = parts;
    this.#worker = worker;
    this.#limit = limit;
  }

  get size(): number {
    return this.#attempts.size;
  }

  get isFull(): boolean {
    return this.#attempts.size >= this.#limit;
  }

  /** The first that got stuck and still are. */
  report(): ReportedStuck[] {
    const all = Array.from(this.#attempts, ([{ row }, since]) => ({ job: row.id, since }));
    return all.slice(0, MOST_STUCK);
  }

  add(attempt: StuckAttempt): void {
    this.#attempts.set(attempt, this.#parts.clock.now());
    this.#parts.counters.add("stuck");
    this.#tell(attempt, "job.stuck");
  }

  /** False if it was not stuck. */
  delete(attempt: StuckAttempt): boolean {
    if (!this.#attempts.delete(attempt)) return false;
    this.#tell(attempt, "job.unstuck");
    return true;
  }

  #tell(attempt: StuckAttempt, name: "job.stuck" | "job.unstuck"): void {
    const { bus, clock } = this.#parts;
    if (bus.wants(name)) bus.emit(bus.detail(attempt.row, name, clock.now()));
    if (this.isFull !== this.#isTold) this.#tellReadiness();
  }

  #tellReadiness(): void {
    const { bus, clock, logger } = this.#parts;
    this.#isTold = this.isFull;
    logger.warn(
      { worker: this.#worker, stuck: this.size },
      this.isFull ? "the worker takes no more jobs" : "the worker takes jobs again",
    );
    bus.emit({
      name: this.isFull ? "worker.unready" : "worker.ready",
      at: clock.now(),
      worker: this.#worker,
      reason: `${this.size} of at most ${this.#limit} handlers are stuck past their hard deadline`,
    });
  }
}
