import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError, checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { rereadImage } from "../../core/job/decide/decision.ts";
import { checkpointOf, type SavedCheckpoint } from "../../core/job/documents/checkpoint.ts";
import { progressOf } from "../../core/job/documents/job-progress.ts";
import { opened, openedRow } from "../../core/job/documents/sealed.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import { type Job, jobView } from "../../core/job/job-view.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Explanation } from "../../core/job/policy/explain.ts";
import type { Why } from "../../core/job/why/reason.ts";
import { whyDuplicate } from "../../core/job/why/why.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, formatDuration, parseDuration } from "../../core/time.ts";
import { LOG_LIMIT } from "../../ports/store.ts";
import type { Timer } from "../../ports/system.ts";
import type { LogLine } from "../attempt/attempt-notes.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { writeCheckpoint } from "./checkpoints.ts";
import { JobFailedError } from "./job-failed-error.ts";
import { JobRows } from "./job-rows.ts";
import { type ExtendOptions, unknownJob } from "./operate-job.ts";
import type { RescheduleOptions } from "./reschedule-options.ts";
import type { RetryByHandOptions } from "./retry-by-hand.ts";
import { why } from "./why-facts.ts";

const POLL = 1_000;

export interface JobProgress {
  readonly state: JobRow["state"];
  readonly attempt: number;
  /** From 0 to 1; null if the attempt reported no progress. */
  readonly value: number | null;
  readonly note?: Json;
}

/** Log lines. `cursor` is the `after` of the next page; null if there are no more lines yet. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  readonly cursor: number | null;
}

/** A job that was enqueued, or named by its id. */
export class JobHandle<Result = unknown> {
  readonly id: JobId;
  /** A job with this id or unique key existed: this handle names it, and nothing was added. */
  readonly duplicate: boolean;
  readonly #context: EngineContext;

  constructor(context: EngineContext, id: JobId, duplicate = false) {
    this.#context = context;
    this.id = id;
    this.duplicate = duplicate;
  }

  /** The job, or null if it is not in the store. */
  async load(): Promise<Job<Result> | null> {
    const row = await this.#rows().load(this.id);
    return row && this.#view<Result>(row);
  }

  /** Ends the job at once, whether it waits or runs (SEMANTICS 5.1). */
  async cancel(by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().cancel(this.id, by));
  }

  /** Changes the limits of the job, whether it waits or runs (SEMANTICS 5.3). */
  async extend(options: ExtendOptions, by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().extend(this.id, options, by));
  }

  /** Runs the job again if it was discarded (SEMANTICS 4.6). */
  async retry(options: RetryByHandOptions = {}, by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().retry(this.id, options, by));
  }

  /** Makes the job available if it is pending. */
  async activate(by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().activate(this.id, by));
  }

  /** Gives the job another priority, from -100 to 100, while it waits. */
  async prioritise(priority: number, by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().prioritise(this.id, priority, by));
  }

  #view<Result>(row: JobRow): Job<Result> {
    return jobView<Result>(openedRow(this.#context.sealing, row));
  }

  /** Returns the source of every limit with the settings that it overrode, the resulting instants, and warnings. */
  explain(definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation> {
    return this.#rows().explain(this.id, definition);
  }

  /** Makes a scheduled or retryable job due now. Its deadlines, attempts and limits stay. */
  async runNow(by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().runNow(this.id, by));
  }

  /** Changes when a waiting job is due. Its deadlines, attempts and limits stay; a time past a deadline is refused. */
  async reschedule(when: RescheduleOptions, by?: By): Promise<Job<Result>> {
    return this.#view(await this.#rows().reschedule(this.id, when, by));
  }

  /**
   * Says why the job does not run, does not end, or ended as it did. If this handle is a duplicate, that is the first
   * reason; the others are about the existing job.
   */
  async why(): Promise<Why> {
    const answer = await why(this.#context, this.id);
    return this.duplicate ? whyDuplicate(answer) : answer;
  }

  /** Progress of the current or last attempt; 1 for a completed job. */
  async progress(): Promise<JobProgress> {
    const row = await this.#row("progress");
    const progress = progressOf(row);
    const value = row.state === "completed" ? 1 : (progress?.value ?? null);
    const { state, attempt } = row;
    return { state, attempt, value, ...(progress?.note !== undefined && { note: progress.note }) };
  }

  /** The saved state that the next attempt begins with; null if there is none. */
  async checkpoint(): Promise<SavedCheckpoint | null> {
    return checkpointOf(await this.#row("checkpoint"));
  }

  /** Deletes the saved state, so that the next attempt begins from the start. Refused while an attempt runs. */
  async clearCheckpoint(): Promise<void> {
    const saved = await writeCheckpoint(this.#context, this.id, null, (row) => row.state !== "active");
    if (saved.ok) return;
    if (saved.because === "gone") throw unknownJob("clearCheckpoint", this.id);
    throw new CurfewError(
      "invalid_state",
      `clearCheckpoint: job ${this.id} is running; cancel it first, or wait until it ends`,
    );
  }

  /** Lines of the job's log, oldest first. The store keeps the last 1,000. */
  async logs(page: { readonly after?: number | null; readonly limit?: number } = {}): Promise<LogPage> {
    refuseUnknownKeys(page, "logs", ["after", "limit"]);
    const { after, limit = 100 } = page;
    if (!Number.isSafeInteger(after ?? 0) || (after ?? 0) < 0)
      throw refuse("invalid_option", "logs.after", after, "use the cursor of the page before");
    checkCount(limit, "logs.limit", LOG_LIMIT);
    const entries = await this.#context.store.inspect.logLines(this.id, after ?? 0, limit);
    const isFull = entries.length === limit;
    return {
      lines: entries.map(({ line }) => line as unknown as LogLine),
      cursor: isFull ? (entries.at(-1)?.seq ?? null) : null,
    };
  }

  #rows(): JobRows {
    return new JobRows(this.#context);
  }

  async #row(call: string): Promise<JobRow> {
    const row = await this.#rows().load(this.id);
    if (!row) throw unknownJob(call, this.id);
    return row;
  }

  /**
   * The processor's return value. Rejects with a JobFailedError if the job ended without a result, with `result_gone`
   * if the job is not in the store, and with `result_timeout` after `within`; the job itself goes on.
   */
  async result(options: { readonly within?: Duration; readonly signal?: AbortSignal } = {}): Promise<Result> {
    const text = await this.storedResult(options);
    if (text === null) return undefined as Result;
    return JSON.parse(opened(this.#context.sealing, text, this, "result")) as Result;
  }

  /** The JSON text of the result as the store has it, encrypted or not; null for none. For servers, which have no keys. */
  async storedResult(
    options: { readonly within?: Duration; readonly signal?: AbortSignal } = {},
  ): Promise<string | null> {
    refuseUnknownKeys(options, "result", ["within", "signal"]);
    const within = options.within === undefined ? undefined : parseDuration(options.within, "result.within");
    return new Promise((resolve, reject) => {
      const { signal } = options;
      const onAbort = () => giveUp(signal?.reason);
      const wait = new ResultWait(this.#context, this.id, (row) => {
        signal?.removeEventListener("abort", onAbort);
        if (row === "closed")
          reject(
            new CurfewError(
              "closed",
              `result: the engine was closed before job ${this.id} ended; the job goes on`,
            ),
          );
        else if (row === null)
          reject(
            new CurfewError(
              "result_gone",
              `result: job ${this.id} is not in the store: it ended and its retention is over ("0s" deletes it at once), or the id is wrong; set a longer retention, or call result() before it ends`,
            ),
          );
        else if (row.state === "completed") resolve(row.result);
        else reject(new JobFailedError(row));
      });
      const giveUp = (error: unknown) => {
        signal?.removeEventListener("abort", onAbort);
        wait.close();
        reject(error);
      };
      if (within !== undefined) {
        const message = `result: job ${this.id} did not end within ${formatDuration(within)}; it goes on: ask again, or allow more time`;
        wait.limit = this.#context.system.after(
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

/** Waits for one job to end: by an announcement of this process, a hint, or a poll. */
class ResultWait {
  limit: Timer | undefined;
  readonly #context: EngineContext;
  readonly #id: JobId;
  readonly #onEnd: (row: JobRow | null | "closed") => void;
  readonly #off: () => void;
  #poll: Timer | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(context: EngineContext, id: JobId, onEnd: (row: JobRow | null | "closed") => void) {
    this.#context = context;
    this.#id = id;
    this.#onEnd = onEnd;
    this.#off = context.waiters.add(id, (row) => (row === "look" ? void this.#look() : this.#end(row)));
  }

  start(): void {
    if (this.#context.waiters.isClosed) this.#end("closed");
    else void this.#look();
  }

  async #look(): Promise<void> {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    try {
      // A claim or a start may change the row before the mark. Then the job may end within milliseconds: ask again at once.
      for (let tries = 0; tries < STALE_TRIES && !this.#isClosed; tries++) {
        const [row] = await this.#context.store.jobs.load([this.#id]);
        if (!row) this.#end(null);
        else if (isTerminal(row.state)) this.#end(row);
        else if (await this.#isMarked(row)) break;
      }
    } catch (error) {
      this.#context.storeFailed(error, "load");
    }
    this.#isLooking = false;
    this.#poll?.cancel();
    if (!this.#isClosed)
      this.#poll = this.#context.system.after(POLL, () => void this.#look(), { keepAlive: true });
  }

  /**
   * A job with retention 0 would be deleted when it settles: the mark keeps it for a minute (SEMANTICS 9). False if the
   * row changed before the mark.
   */
  async #isMarked(row: JobRow): Promise<boolean> {
    const retention = row.policy?.retention ?? row.options?.retention;
    if (row.options?.awaited || !retention || !Object.values(retention).includes(0)) return true;
    const documents = { options: { ...row.options, awaited: true as const } };
    const decision = { ok: true, image: rereadImage(row), documents, events: [] } as const;
    const at = this.#context.clock.now();
    const [outcome] = await commitJobs(this.#context, [{ row, decision, at, by: "outsider" }]);
    return outcome?.ok === true;
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
