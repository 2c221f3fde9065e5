import type { NewEvent } from "../../core/event/new-event.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import { StopError } from "../../core/job/reasons.ts";
import { type Json, LOG_LINE_LIMIT, LOG_LINES_LIMIT, LOG_SIZE_LIMIT, toJsonText } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Outcome, Refused } from "../../ports/store.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";

/** Notes to commit, alone or with the verdict. */
export interface NoteContent {
  readonly documents?: JobDocuments;
  readonly effects?: readonly Effect[];
  /** Resolves or rejects the promises of `durable()`. */
  readonly settle?: (outcome: Outcome) => void;
}

export interface NotedAttempt {
  readonly row: JobRow;
  refused(outcome: Refused): void;
}

export interface LogLine {
  readonly at: Instant;
  readonly attempt: number;
  readonly message: string;
  readonly fields?: { readonly [key: string]: Json };
}

const LONGEST_MESSAGE = 4_000;
const LOG_IS_FULL = "The log of this attempt is full; later lines are dropped";

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Progress, checkpoint and log lines of one attempt that are not committed yet. The queue takes them with its next batch,
 * so a handler that reports often costs one write per batch. A verdict takes those that are left.
 */
export class UnsentNotes {
  readonly #writer: CommitQueue;
  readonly #attempt: NotedAttempt;
  #documents: JobDocuments | undefined;
  #effects: Effect[] | undefined;
  #progressEvent: NewEvent | undefined;
  #waiting: Waiting[] | undefined;
  #isQueued = false;
  #logLines = 0;
  #logSize = 0;

  constructor(writer: CommitQueue, attempt: NotedAttempt) {
    this.#writer = writer;
    this.#attempt = attempt;
  }

  /** Only the newest documents and the newest event are committed. */
  write(documents: JobDocuments, progressEvent?: NewEvent): void {
    this.#documents = { ...this.#documents, ...documents };
    if (progressEvent) this.#progressEvent = progressEvent;
    this.#queue();
  }

  /** Resolves when all notes so far are durable. */
  durable(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting ??= [];
      this.#waiting.push({ resolve, reject });
    });
  }

  /** Calls back when all notes so far are durable; never if their write is refused. */
  onDurable(callback: () => void): void {
    this.#waiting ??= [];
    this.#waiting.push({ resolve: callback, reject: () => {} });
  }

  log(at: Instant, message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.#logLines >= LOG_LINES_LIMIT) return;
    const { id, attempt } = this.#attempt.row;
    const line: LogLine = {
      at,
      attempt,
      message: String(message).slice(0, LONGEST_MESSAGE),
      ...(fields && { fields }),
    };
    const text = toJsonText(line, "log", LOG_LINE_LIMIT);
    this.#logLines += 1;
    this.#logSize += text.length;
    const isFull = this.#logLines === LOG_LINES_LIMIT || this.#logSize > LOG_SIZE_LIMIT;
    if (isFull) this.#logLines = LOG_LINES_LIMIT;
    const log = isFull ? { at, attempt, message: LOG_IS_FULL } : (JSON.parse(text) as Json);
    this.#effects ??= [];
    this.#effects.push({ log, job: id });
    this.#queue();
  }

  #queue(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    const { id } = this.#attempt.row;
    let taken: NoteContent | undefined;
    this.#writer.push({
      id,
      unit: () => {
        this.#isQueued = false;
        taken = this.take();
        if (!taken) return null;
        const { documents, effects } = taken;
        const job = { id, fence: this.#attempt.row.fence, ...(documents && { documents }) };
        return effects ? { job, effects } : { job };
      },
      done: (outcome) => {
        taken?.settle?.(outcome);
        if (!outcome.ok) this.#attempt.refused(outcome);
      },
    });
  }

  /** Takes the notes that no commit has. */
  take(): NoteContent | undefined {
    const documents = this.#documents;
    const effects = this.#progressEvent ? [...(this.#effects ?? []), this.#progressEvent] : this.#effects;
    const waiting = this.#waiting;
    this.#progressEvent = undefined;
    this.#documents = undefined;
    this.#effects = undefined;
    this.#waiting = undefined;
    if (!documents && !effects) return undefined;
    return {
      ...(documents && { documents }),
      ...(effects && { effects }),
      ...(waiting && { settle: (outcome: Outcome) => settle(waiting, outcome) }),
    };
  }
}

function settle(waiting: readonly Waiting[], outcome: Outcome): void {
  for (const { resolve, reject } of waiting) {
    if (outcome.ok) resolve();
    else reject(new StopError("lost", 0, null));
  }
}
