import { CurfewError } from "../../core/errors.ts";
import type { ErrorRecord, JobRow } from "../../core/job/job.ts";

/** The job ended without a result; `record` is its last error. */
export class JobFailedError extends CurfewError {
  override readonly name = "JobFailedError";
  readonly record: ErrorRecord | undefined;
  readonly state: JobRow["state"];

  constructor(row: Pick<JobRow, "id" | "state" | "errors">) {
    const record = row.errors?.at(-1);
    super("job_failed", `job ${row.id} was ${row.state}${record ? `: ${record.message}` : ""}`);
    this.record = record;
    this.state = row.state;
  }
}
