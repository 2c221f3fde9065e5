import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { MOST_STUCK, type ReportedStuck } from "../../core/worker/worker-report.ts";
import type { AttemptParts } from "../context.ts";

interface StuckAttempt {
  readonly row: JobRow;
}

/**
 * Handlers that still run after their verdict. The process cannot end them, so it counts them. A worker with too many of
 * them claims no more jobs and says so (SEMANTICS 3.7).
 */
export class StuckHandlers {
  readonly #context: AttemptParts;
  readonly #limit: number;
  /** By attempt, with the instant of its verdict. */
  readonly #attempts = new Map<StuckAttempt, Instant>();
  readonly #onChange: () => void;

  constructor(context: AttemptParts, limit: number, onChange: () => void) {
    this.#context = context;
    this.#limit = limit;
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#attempts.size;
  }

  get isFull(): boolean {
    return this.#attempts.size >= this.#limit;
  }

  /** The stuck attempts, oldest first, at most `MOST_STUCK`. */
  report(): ReportedStuck[] {
    const all = Array.from(this.#attempts, ([{ row }, since]) => ({ job: row.id, since }));
    return all.slice(0, MOST_STUCK);
  }

  add(attempt: StuckAttempt): void {
    this.#attempts.set(attempt, this.#context.clock.now());
    this.#context.counters.add("stuck");
    this.#announce(attempt, "job.stuck");
  }

  /** Returns false if the attempt was not stuck. */
  delete(attempt: StuckAttempt): boolean {
    if (!this.#attempts.delete(attempt)) return false;
    this.#announce(attempt, "job.unstuck");
    return true;
  }

  #announce(attempt: StuckAttempt, name: "job.stuck" | "job.unstuck"): void {
    const { bus, clock } = this.#context;
    if (bus.wants(name)) bus.emit(bus.detail(attempt.row, name, clock.now()));
    this.#onChange();
  }
}
