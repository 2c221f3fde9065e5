import { errorInput } from "../../core/job/error-input.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { AttemptParts } from "../context.ts";

type Hook = () => void | Promise<void>;

/** Hooks that run once when the signal aborts. Their end does not end the attempt, and their error is only told. */
export class CleanupHooks {
  readonly #parts: AttemptParts;
  readonly #row: () => JobRow;
  readonly #hooks: Hook[] = [];

  constructor(parts: AttemptParts, row: () => JobRow) {
    this.#parts = parts;
    this.#row = row;
  }

  /** A hook that comes after the signal runs at once. */
  add(hook: Hook, isAborted: boolean): void {
    this.#hooks.push(hook);
    if (isAborted) this.run();
  }

  run(): void {
    for (const hook of this.#hooks.splice(0)) {
      try {
        const running = hook();
        if (running instanceof Promise) running.catch((error) => this.#failed(error));
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  #failed(error: unknown): void {
    cleanupFailed(this.#parts, this.#row(), error);
  }
}

/** A hook's error is told and changes nothing. */
export function cleanupFailed({ bus, clock, logger }: AttemptParts, row: JobRow, error: unknown): void {
  logger.warn({ job: row.id, error }, "a cleanup hook failed");
  if (!bus.wants("job.cleanup_failed")) return;
  const at = clock.now();
  const record = { ...errorInput(error), attempt: row.attempt, at };
  bus.emit({ ...bus.detail(row, "job.cleanup_failed", at), error: record });
}
