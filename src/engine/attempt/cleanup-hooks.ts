import { errorInput } from "../../core/job/decide/error-input.ts";
import { scrubError } from "../../core/job/documents/redaction.ts";
import type { JobRow } from "../../core/job/job.ts";
import { callSafely } from "../../core/user-values.ts";
import type { AttemptParts } from "../context.ts";

type Hook = () => void | Promise<void>;

/** Hooks that run once when the signal aborts. They do not end the attempt, and their errors are only logged and announced. */
export class CleanupHooks {
  readonly #context: AttemptParts;
  readonly #row: () => JobRow;
  readonly #hooks: Hook[] = [];

  constructor(context: AttemptParts, row: () => JobRow) {
    this.#context = context;
    this.#row = row;
  }

  /** A hook that is added after the signal runs at once. */
  add(hook: Hook, isAborted: boolean): void {
    this.#hooks.push(hook);
    if (isAborted) this.run();
  }

  run(): void {
    for (const hook of this.#hooks.splice(0)) callSafely(hook, (error) => this.#failed(error));
  }

  #failed(error: unknown): void {
    cleanupFailed(this.#context, this.#row(), error);
  }
}

/** Logs and announces the error of a hook. */
export function cleanupFailed({ bus, clock, logger }: AttemptParts, row: JobRow, error: unknown): void {
  const told = scrubError(errorInput(error), row);
  logger.warn({ job: row.id, error: row.options?.redact ? told : error }, "a cleanup hook failed");
  if (!bus.wants("job.cleanup_failed")) return;
  const at = clock.now();
  const record = { ...told, attempt: row.attempt, at };
  bus.emit({ ...bus.detail(row, "job.cleanup_failed", at), error: record });
}
