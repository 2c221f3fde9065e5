import type { NewEvent } from "../../core/event/new-event.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import { StopError } from "../../core/job/reasons.ts";
import { type Json, LOG_LINE_LIMIT, LOG_LINES_LIMIT, LOG_SIZE_LIMIT, toJsonText } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Outcome, Refused } from "../../ports/store.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";

/** What was written before a verdict and travels with it. */
export interface NoteContent {
  readonly documents?: JobDocuments;
  readonly effects?: readonly Effect[];
  /** Tells whoever waits for a checkpoint to be durable. */
  readonly settle?: (outcome: Outcome) => void;
}

/** What a draft needs of the attempt that writes it. */
export interface NotedAttempt {
  readonly row: JobRow;
  refused(outcome: Refused): void;
}

/** A line of a job's log. */
export interface LogLine {
  readonly at: Instant;
  readonly attempt: number;
  readonly message: string;
  readonly fields?: { readonly [key: string]: Json };
}

const LONGEST_MESSAGE = 4_000;
export const LOG_IS_FULL = "This attempt has logged as much as is kept; what follows is left out";

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Progress, checkpoint and log lines of one attempt on their way into the store. They are gathered until the writer
 * takes them, so a handler that reports often costs one write per batch; a verdict takes what is left with it.
 */
export class UnsentNotes {
  readonly #writer: CommitQueue;
  readonly #attempt: NotedAttempt;
  #documents: JobDocuments | undefined;
  #effects: Effect[] | undefined;
  #told: NewEvent | undefined;
  #waiting: Waiting[] | undefined;
  #isQueued = false;
  #logLines = 0;
  #logSize = 0;

  constructor(writer: CommitQueue, attempt: NotedAttempt) {
    this.#writer = writer;
    this.#attempt = attempt;
  }

  /** What is told of it replaces what was to be told before: of progress only the last is kept, too. */
  write(documents: JobDocuments, told?: NewEvent): void {
    this.#documents = { ...this.#documents, ...documents };
    if (told) this.#told = told;
    this.#queue();
  }

  /** Resolves once what was written so far is durable. */
  durable(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting ??= [];
      this.#waiting.push({ resolve, reject });
    });
  }

  /** Calls back once what was written so far is durable, and never if it does not become so. */
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

  /** Hands over what is not on its way yet. */
  take(): NoteContent | undefined {
    const documents = this.#documents;
    const effects = this.#told ? [...(this.#effects ?? []), this.#told] : this.#effects;
    const waiting = this.#waiting;
    this.#told = undefined;
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
