import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { checkpointOf, type SavedCheckpoint } from "../../core/job/checkpoint.ts";
import { rereadImage } from "../../core/job/decision.ts";
import type { Explanation } from "../../core/job/explain.ts";
import type { ErrorRecord, JobId, JobRow } from "../../core/job/job.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import { progressOf } from "../../core/job/job-progress.ts";
import { type Job, jobView } from "../../core/job/job-view.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Why } from "../../core/job/why/reason.ts";
import { whyDuplicate } from "../../core/job/why.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, formatDuration, parseDuration } from "../../core/time.ts";
import { LOG_LIMIT } from "../../ports/store.ts";
import type { Timer } from "../../ports/system.ts";
import type { LogLine } from "../attempt/attempt-notes.ts";
import { commitJobs } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { writeCheckpoint } from "./checkpoints.ts";
import { JobRows } from "./job-rows.ts";
import type { ExtendOptions, RetryByHandOptions } from "./operate-job.ts";
import { why } from "./why.ts";

const POLL = 1_000;

/** The job ended without a result; `record` is the error kept on it. */
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

/** How far a job is. */
export interface JobProgress {
  readonly state: JobRow["state"];
  readonly attempt: number;
  /** From 0 to 1; null if the attempt has not said. */
  readonly value: number | null;
  readonly note?: Json;
}

/** Lines of a log; `cursor` is the `after` of the next page, and null says that there is none yet. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  readonly cursor: number | null;
}

/** A job that was enqueued, or found by its id. */
export class JobHandle<Result = unknown> {
  readonly id: JobId;
  /** The id or unique key was known already: this is the old job, and nothing was added. */
  readonly duplicate: boolean;
  readonly #parts: EngineContext;

  constructor(parts: EngineContext, id: JobId, duplicate = false) {
    this.#parts = parts;
    this.id = id;
    this.duplicate = duplicate;
  }

  /** The job as it stands, or null if it is not kept. */
  async load(): Promise<Job<Result> | null> {
    const row = await this.#rows().load(this.id);
    return row && jobView<Result>(row);
  }

  /** Ends the job at once, waiting or running (SEMANTICS 5.1). */
  async cancel(by?: By): Promise<Job<Result>> {
    return jobView(await this.#rows().cancel(this.id, by));
  }

  /** Changes the limits of the job, waiting or running (SEMANTICS 5.3). */
  async extend(options: ExtendOptions, by?: By): Promise<Job<Result>> {
    return jobView(await this.#rows().extend(this.id, options, by));
  }

  /** Runs the job again if it was discarded (SEMANTICS 4.6). */
  async retry(options: RetryByHandOptions = {}, by?: By): Promise<Job<Result>> {
    return jobView(await this.#rows().retry(this.id, options, by));
  }

  /** Makes the job available if it is pending. */
  async activate(by?: By): Promise<Job<Result>> {
    return jobView(await this.#rows().activate(this.id, by));
  }

  /** Gives the job another priority, from -100 to 100, while it waits. */
  async prioritise(priority: number, by?: By): Promise<Job<Result>> {
    return jobView(await this.#rows().prioritise(this.id, priority, by));
  }

  /** Says for every limit of the job which source won and what lost, the resulting instants, and what looks wrong. */
  explain(definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation> {
    return this.#rows().explain(this.id, definition);
  }

  /** Runs a scheduled or retryable job as if it were due now; its deadlines, attempts and limits stay. */
  async runNow(by?: By): Promise<Job<Result>> {
    return jobView(await this.#rows().runNow(this.id, by));
  }

  /**
   * Says why the job does not run, does not end, or ended as it did. If this enqueue added nothing, that is the first
   * reason, and the others are about the job that was there.
   */
  async why(): Promise<Why> {
    const said = await why(this.#parts, this.id);
    return this.duplicate ? whyDuplicate(said) : said;
  }

  /** How far the current attempt is, or the last one was; a completed job is done. */
  async progress(): Promise<JobProgress> {
    const row = await this.#row("progress");
    const kept = progressOf(row);
    const value = row.state === "completed" ? 1 : (kept?.value ?? null);
    const { state, attempt } = row;
    return { state, attempt, value, ...(kept?.note !== undefined && { note: kept.note }) };
  }

  /** The state that the next attempt begins with, or that the last one saved; null if there is none. */
  async checkpoint(): Promise<SavedCheckpoint | null> {
    return checkpointOf(await this.#row("checkpoint"));
  }

  /** Forgets the saved state, so that the next attempt begins from the start. Not while one runs: it is the attempt's own. */
  async clearCheckpoint(): Promise<void> {
    const saved = await writeCheckpoint(this.#parts, this.id, null, (row) => row.state !== "active");
    if (saved.ok) return;
    if (saved.because === "gone") throw this.#gone("clearCheckpoint");
    throw new CurfewError(
      "invalid_state",
      `clearCheckpoint: job ${this.id} is running; cancel it first, or wait until it ends`,
    );
  }

  /** Lines of the job's log, oldest first; of a log the last 1,000 are kept. */
  async logs(page: { readonly after?: number | null; readonly limit?: number } = {}): Promise<LogPage> {
    refuseUnknownKeys(page, "logs", ["after", "limit"]);
    const { after, limit = 100 } = page;
    if (!Number.isSafeInteger(after ?? 0) || (after ?? 0) < 0)
      throw refuse("invalid_option", "logs.after", after, "use the cursor of the page before");
    if (!Number.isInteger(limit) || limit < 1 || limit > LOG_LIMIT)
      throw refuse("invalid_limit", "logs.limit", limit, `use a whole number from 1 to ${LOG_LIMIT}`);
    const found = await this.#parts.store.inspect.logLines(this.id, after ?? 0, limit);
    const isFull = found.length === limit;
    return {
      lines: found.map(({ line }) => line as unknown as LogLine),
      cursor: isFull ? (found.at(-1)?.seq ?? null) : null,
    };
  }

  #rows(): JobRows {
    return new JobRows(this.#parts);
  }

  async #row(asked: string): Promise<JobRow> {
    const row = await this.#rows().load(this.id);
    if (!row) throw this.#gone(asked);
    return row;
  }

  #gone(asked: string): CurfewError {
    return new CurfewError("not_found", `${asked}: there is no job ${this.id}`);
  }

  /**
   * What the processor returned. It rejects with a JobFailedError if the job ended without a result, with
   * `result_gone` if nothing was kept of it, and with `result_timeout` when `within` is over; the job itself goes on.
   */
  async result(options: { readonly within?: Duration; readonly signal?: AbortSignal } = {}): Promise<Result> {
    refuseUnknownKeys(options, "result", ["within", "signal"]);
    const within = options.within === undefined ? undefined : parseDuration(options.within, "result.within");
    return new Promise((resolve, reject) => {
      const { signal } = options;
      const onAbort = () => giveUp(signal?.reason);
      const wait = new ResultWait(this.#parts, this.id, (row) => {
        signal?.removeEventListener("abort", onAbort);
        if (row === "closed")
          reject(new CurfewError("closed", `the engine was closed before job ${this.id} ended; it goes on`));
        else if (row === null)
          reject(
            new CurfewError(
              "result_gone",
              `there is no job ${this.id}: either it never was, or it ended and was not kept (set retention above "0s", or ask before it ends)`,
            ),
          );
        else if (row.state === "completed")
          resolve((row.result === null ? undefined : JSON.parse(row.result)) as Result);
        else reject(new JobFailedError(row));
      });
      const giveUp = (error: unknown) => {
        signal?.removeEventListener("abort", onAbort);
        wait.close();
        reject(error);
      };
      if (within !== undefined) {
        const message = `job ${this.id} did not end within ${formatDuration(within)}; it goes on`;
        wait.limit = this.#parts.system.after(
          within,
          () => giveUp(new CurfewError("result_timeout", message)),
          { keepAlive: true },
        );
      }
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) onAbort();
      wait.start();
    });
  }
}

/** Waits for one job to end: told by this process, by a hint, or at the latest by a poll. */
class ResultWait {
  limit: Timer | undefined;
  readonly #parts: EngineContext;
  readonly #id: JobId;
  readonly #onEnd: (row: JobRow | null | "closed") => void;
  readonly #off: () => void;
  #poll: Timer | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(parts: EngineContext, id: JobId, onEnd: (row: JobRow | null | "closed") => void) {
    this.#parts = parts;
    this.#id = id;
    this.#onEnd = onEnd;
    this.#off = parts.waiters.add(id, (row) => (row === "look" ? void this.#look() : this.#end(row)));
  }

  start(): void {
    if (this.#parts.waiters.isClosed) this.#end("closed");
    else void this.#look();
  }

  async #look(): Promise<void> {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    try {
      const [row] = await this.#parts.store.jobs.load([this.#id]);
      if (!row) this.#end(null);
      else if (isTerminal(row.state)) this.#end(row);
      else await this.#markAwaited(row);
    } catch (error) {
      this.#parts.storeFailed(error, "load");
    }
    this.#isLooking = false;
    this.#poll?.cancel();
    if (!this.#isClosed)
      this.#poll = this.#parts.system.after(POLL, () => void this.#look(), { keepAlive: true });
  }

  /** A job whose retention is 0 would be deleted in its settle: the mark keeps it for a minute (SEMANTICS 9). */
  async #markAwaited(row: JobRow): Promise<void> {
    const retention = row.policy?.retention ?? row.options?.retention;
    if (row.options?.awaited || !retention || !Object.values(retention).includes(0)) return;
    const documents = { options: { ...row.options, awaited: true as const } };
    const decision = { ok: true, image: rereadImage(row), documents, events: [] } as const;
    await commitJobs(this.#parts, [{ row, decision, at: this.#parts.clock.now(), by: "outsider" }]);
  }

  #end(row: JobRow | null | "closed"): void {
    if (this.#isClosed) return;
    this.close();
    this.#onEnd(row);
  }

  close(): void {
    this.#isClosed = true;
    this.#off();
    this.#poll?.cancel();
    this.limit?.cancel();
  }
}
