import { refuse } from "../core/errors.ts";
import { UUID } from "../core/ids.ts";
import type { SavedCheckpoint } from "../core/job/documents/checkpoint.ts";
import type { JobId } from "../core/job/job.ts";
import type { JobDefinition } from "../core/job/job-definition.ts";
import type { Job } from "../core/job/job-view.ts";
import { type Explanation, printable } from "../core/job/policy/explain.ts";
import { portableDefinition } from "../core/job/transfer/portable.ts";
import { printWhy, type Why } from "../core/job/why/reason.ts";
import { whyDuplicate } from "../core/job/why/why.ts";
import type { Duration } from "../core/time.ts";
import type { JobHandleApi } from "../engine/curfew-api.ts";
import type { JobProgress, LogPage } from "../engine/operations/job-handle.ts";
import type { ExtendOptions } from "../engine/operations/operate-job.ts";
import type { RescheduleOptions } from "../engine/operations/reschedule-options.ts";
import type { RetryByHandOptions } from "../engine/operations/retry-by-hand.ts";
import type { Awaited } from "../ojs/call-names.ts";
import type { Caller } from "./caller.ts";
import { openedJob, openedJson } from "./opened-job.ts";
import { readJob } from "./remote-jobs.ts";
import { waitFor } from "./remote-wait.ts";

/** A job at the server. */
export class RemoteJobHandle<Result = unknown> implements JobHandleApi<Result> {
  readonly id: JobId;
  /** A job with this id or unique key existed: this handle names it, and nothing was added. */
  readonly duplicate: boolean;
  readonly #caller: Caller;

  constructor(caller: Caller, id: JobId, duplicate = false) {
    this.#caller = caller;
    this.id = id;
    this.duplicate = duplicate;
  }

  /** Another text would be refused by the server, with less to say about it. */
  #checkedId(): JobId {
    if (typeof this.id === "string" && UUID.test(this.id)) return this.id;
    throw refuse("invalid_option", "id", this.id, "pass the id of a job, a lower-case UUID");
  }

  /** The current job, or null. */
  async load(): Promise<Job<Result> | null> {
    const found = await this.#caller.call<Job<Result> | null>("jobs.load", [this.#checkedId()]);
    return found && this.#read(found);
  }

  /** Ends the job at once, waiting or running (SEMANTICS 5.1). */
  async cancel(): Promise<Job<Result>> {
    const cancelled = await this.#caller.call<Job<Result> | undefined>("jobs.cancel", [this.#checkedId()], {
      // An earlier try without an answer may have cancelled it.
      onRepeated: ({ code }) => code === "invalid_state",
    });
    if (cancelled) return this.#read(cancelled);
    const job = await this.load();
    if (job?.state === "cancelled") return job;
    return this.#read(await this.#caller.call<Job<Result>>("jobs.cancel", [this.#checkedId()]));
  }

  /** Changes the limits of the job, waiting or running (SEMANTICS 5.3). */
  extend(options: ExtendOptions): Promise<Job<Result>> {
    return this.#changed("jobs.extend", options);
  }

  /** Runs the job again if it was discarded (SEMANTICS 4.6). */
  retry(options?: RetryByHandOptions): Promise<Job<Result>> {
    return this.#changed("jobs.retry", options);
  }

  /** Makes the job available if it is pending. */
  activate(): Promise<Job<Result>> {
    return this.#changed("jobs.activate");
  }

  /** Gives the job another priority, from -100 to 100, while it waits. */
  prioritise(priority: number): Promise<Job<Result>> {
    return this.#changed("jobs.prioritise", priority);
  }

  /** Makes a scheduled or retryable job due now. */
  runNow(): Promise<Job<Result>> {
    return this.#changed("jobs.runNow");
  }

  /** Changes when a waiting job is due. */
  reschedule(when: RescheduleOptions): Promise<Job<Result>> {
    return this.#changed("jobs.reschedule", when);
  }

  #read(job: Job<Result>): Job<Result> {
    return openedJob(this.#caller.sealing, readJob(job));
  }

  async #changed(name: ChangeName, argument?: unknown): Promise<Job<Result>> {
    return this.#read(await this.#caller.call<Job<Result>>(name, [this.#checkedId(), argument]));
  }

  /** Returns the source of every limit with the settings that it overrode, the resulting instants, and warnings. */
  async explain(definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation> {
    // The key of a limit may be a function of a payload, and explain does not look at limits.
    const said = definition && portableDefinition({ ...definition, limit: undefined });
    return printable(await this.#caller.call<Explanation>("jobs.explain", [this.#checkedId(), said]));
  }

  /** Explains why the job does not run, does not end, or ended. A duplicate says first that nothing was added. */
  async why(): Promise<Why> {
    const said = await this.#caller.call<Why>("jobs.why", [this.#checkedId()]);
    return this.duplicate ? whyDuplicate(said) : { ...said, toString: () => printWhy(said) };
  }

  /** Progress of the current or last attempt; 1 for a completed job. */
  async progress(): Promise<JobProgress> {
    return this.#caller.call("jobs.progress", [this.#checkedId()]);
  }

  /** The saved state that the next attempt begins with; null if there is none. */
  async checkpoint(): Promise<SavedCheckpoint | null> {
    return this.#caller.call("jobs.checkpoint", [this.#checkedId()]);
  }

  /** Deletes the saved state, so that the next attempt begins from the start. */
  async clearCheckpoint(): Promise<void> {
    return this.#caller.call("jobs.clearCheckpoint", [this.#checkedId()]);
  }

  /** Lines of the job's log, oldest first. */
  async logs(page?: { readonly after?: number | null; readonly limit?: number }): Promise<LogPage> {
    return this.#caller.call("jobs.logs", [this.#checkedId(), page]);
  }

  /**
   * The processor's return value. Rejects with a JobFailedError if the job ended without a result, with `result_gone` if
   * the job does not exist, and with `result_timeout` when `within` is over; the job continues.
   */
  result(options: { readonly within?: Duration; readonly signal?: AbortSignal } = {}): Promise<Result> {
    return this.#opened(
      waitFor<Result>(this.#caller, `job ${this.id}`, options, (wait) =>
        this.#caller.call<Awaited<Result>>("jobs.result", [this.#checkedId(), wait], {
          wait,
          about: this.id,
        }),
      ),
    );
  }

  async #opened(result: Promise<Result>): Promise<Result> {
    return openedJson(this.#caller.sealing, await result, this.id, "result");
  }
}

type ChangeName =
  | "jobs.extend"
  | "jobs.retry"
  | "jobs.activate"
  | "jobs.prioritise"
  | "jobs.runNow"
  | "jobs.reschedule";
