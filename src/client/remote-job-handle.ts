import { CurfewError } from "../core/errors.ts";
import type { JobId } from "../core/job/job.ts";
import { isTerminal } from "../core/job/lifecycle.ts";
import type { Why } from "../core/job/why/reason.ts";
import { whyDuplicate } from "../core/job/why.ts";
import { backoff, jittered } from "../core/pace.ts";
import { type Duration, formatDuration, parseDuration } from "../core/time.ts";
import { JobFailedError } from "../engine/operations/job-failed-error.ts";
import type { ExtendOptions } from "../engine/operations/operate-job.ts";
import type { JobSnapshot } from "../ojs/read-job.ts";
import type { System, Timer } from "../ports/system.ts";

/** What a handle needs from its client. */
export interface HandleHost {
  readonly system: System;
  /** `wait`: how long the server may wait for the job's end before it replies. */
  load(id: JobId, wait?: number): Promise<JobSnapshot | null>;
  /** The result of an ended job, decrypted. Throws if it cannot be. */
  resultOf(job: JobSnapshot): unknown;
  cancel(id: JobId): Promise<JobSnapshot>;
  extend(id: JobId, options: ExtendOptions): Promise<JobSnapshot>;
  why(id: JobId): Promise<Why>;
  /** Calls back when the client closes. Returns the function that unsubscribes. */
  onClose(callback: () => void): () => void;
}

const WAIT = 2_000;
const POLL = { first: 50, factor: 2, most: 1_000 };

/** A job at the server. */
export class RemoteJobHandle<Result = unknown> {
  readonly id: JobId;
  /** The id was known: this is the old job, and nothing was added. */
  readonly duplicate: boolean;
  readonly #host: HandleHost;

  constructor(host: HandleHost, id: JobId, duplicate = false) {
    this.#host = host;
    this.id = id;
    this.duplicate = duplicate;
  }

  /** The current job, or null. */
  load(): Promise<JobSnapshot | null> {
    return this.#host.load(this.id);
  }

  /** Ends the job at once, waiting or running (SEMANTICS 5.1). */
  cancel(): Promise<JobSnapshot> {
    return this.#host.cancel(this.id);
  }

  /** Changes the limits of the job, waiting or running (SEMANTICS 5.3). */
  extend(options: ExtendOptions): Promise<JobSnapshot> {
    return this.#host.extend(this.id, options);
  }

  /** Explains why the job does not run, does not end, or ended. A duplicate says first that nothing was added. */
  async why(): Promise<Why> {
    const said = await this.#host.why(this.id);
    return this.duplicate ? whyDuplicate(said) : said;
  }

  /**
   * The processor's return value. Rejects with a JobFailedError if the job ended without a result, with `result_gone` if
   * the job does not exist, and with `result_timeout` when `within` is over; the job continues.
   */
  result(options: { readonly within?: Duration; readonly signal?: AbortSignal } = {}): Promise<Result> {
    const within = options.within === undefined ? undefined : parseDuration(options.within, "within");
    return new Promise((resolve, reject) => {
      const wait = new ResultWait(
        this.#host,
        this.id,
        (job) => {
          if (job === null)
            reject(
              new CurfewError(
                "result_gone",
                `result: job ${this.id} not found; it never existed, or it ended and its retention is over`,
              ),
            );
          else if (job.state === "completed") {
            try {
              resolve(this.#host.resultOf(job) as Result);
            } catch (error) {
              reject(error);
            }
          } else reject(new JobFailedError(job));
        },
        reject,
      );
      wait.start(within, options.signal);
    });
  }
}

/** Waits for one job to end. The server holds the request until then; an early reply leads to another request after a pause. */
class ResultWait {
  readonly #host: HandleHost;
  readonly #id: JobId;
  readonly #onEnd: (job: JobSnapshot | null) => void;
  readonly #onFailed: (error: unknown) => void;
  readonly #undo: (() => void)[] = [];
  #poll: Timer | undefined;
  #polls = 1;
  #isOver = false;

  constructor(
    host: HandleHost,
    id: JobId,
    onEnd: (job: JobSnapshot | null) => void,
    onFailed: (error: unknown) => void,
  ) {
    this.#host = host;
    this.#id = id;
    this.#onEnd = onEnd;
    this.#onFailed = onFailed;
  }

  start(within: number | undefined, signal: AbortSignal | undefined): void {
    if (within !== undefined) {
      const message = `job ${this.#id} did not end within ${formatDuration(within)}; it continues`;
      const giveUp = () => this.#fail(new CurfewError("result_timeout", message));
      const limit = this.#host.system.after(within, giveUp, { keepAlive: true });
      this.#undo.push(() => limit.cancel());
    }
    if (signal) {
      const onAbort = () => this.#fail(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#undo.push(() => signal.removeEventListener("abort", onAbort));
      if (signal.aborted) onAbort();
    }
    const closed = `the client was closed before job ${this.#id} ended; the job continues`;
    this.#undo.push(this.#host.onClose(() => this.#fail(new CurfewError("closed", closed))));
    void this.#look();
  }

  async #look(): Promise<void> {
    if (this.#isOver) return;
    const { system } = this.#host;
    const askedAt = system.monotonic();
    try {
      const job = await this.#host.load(this.#id, WAIT);
      if (job === null || isTerminal(job.state)) {
        this.#end();
        this.#onEnd(job);
        return;
      }
    } catch (error) {
      // An unreachable server may come back. A refusal is final.
      const isAway = error instanceof CurfewError && error.code === "server_failed";
      if (!isAway) this.#fail(error);
    }
    if (this.#isOver) return;
    const hasWaited = system.monotonic() - askedAt >= WAIT / 2;
    this.#polls = hasWaited ? 1 : this.#polls + 1;
    const delay = jittered(backoff(this.#polls, POLL), system.random);
    this.#poll = system.after(delay, () => void this.#look(), { keepAlive: true });
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.#onFailed(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#poll?.cancel();
    for (const undo of this.#undo.splice(0)) undo();
  }
}
