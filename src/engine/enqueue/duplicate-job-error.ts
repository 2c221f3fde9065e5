import { CurfewError } from "../../core/errors.ts";
import type { JobId } from "../../core/job/job.ts";

/** The unique key is taken, and the rule says `reject`. `existing` is the job that holds the key. */
export class DuplicateJobError extends CurfewError {
  override readonly name = "DuplicateJobError";
  readonly existing: JobId;

  constructor(type: string, existing: JobId) {
    super(
      "duplicate_job",
      `enqueue: job ${existing} of type ${type} has the same unique key; use that job, or onConflict "ignore" or "replace"`,
    );
    this.existing = existing;
  }
}
