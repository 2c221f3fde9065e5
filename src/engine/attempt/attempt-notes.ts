import type { NewEvent } from "../../core/event/new-event.ts";
import { progressText } from "../../core/job/documents/job-progress.ts";
import { scrubNote, scrubWords } from "../../core/job/documents/redaction.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import { StopError } from "../../core/job/reasons.ts";
import { type Json, LOG_LINE_LIMIT, LOG_LINES_LIMIT, LOG_SIZE_LIMIT, toJsonText } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Outcome, Refused } from "../../ports/store.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import type { EngineContext } from "../context.ts";

/** Notes to commit, alone or with the verdict. */
export interface NoteContent {
  readonly documents?: JobDocuments;
  readonly effects?: readonly Effect[];
  /** Calls back those who wait for these notes to be durable. */
  readonly settle?: (outcome: Outcome) => void;
}

interface NotedAttempt {
  readonly parts: EngineContext;
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
export const LOG_IS_FULL = "The log of this attempt is full; later lines are dropped";

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Progress, checkpoints and log lines that an attempt reports before its verdict. The queue takes them with its next
 * batch, so a handler that reports often costs one write per batch. A verdict takes those that are left.
 */
export class AttemptNotes {
  readonly #queue: CommitQueue;
  readonly #attempt: NotedAttempt;
  #documents: JobDocuments | undefined;
  #effects: Effect[] | undefined;
  #progressEvent: NewEvent | undefined;
  #waiting: Waiting[] | undefined;
  #isQueued = false;
  #logLines = 0;
  #logSize = 0;

  constructor(queue: CommitQueue, attempt: NotedAttempt) {
    this.#queue = queue;
    this.#attempt = attempt;
  }

  /** Only the newest progress of a batch is committed, with its event. */
  progress(fraction: number, note: Json | undefined): void {
    const { parts, row } = this.#attempt;
    const { bus, clock, documentLimit, recorder } = parts;
    const progress = progressText(fraction, scrubNote(note, row), documentLimit);
    const at = clock.now();
    this.#progressEvent = recorder.progress(row, progress, at) ?? this.#progressEvent;
    this.#write({ progress });
    if (!bus.wants("job.progress")) return;
    const event = { ...bus.detail(row, "job.progress", at), progress: JSON.parse(progress) };
    this.#await(() => bus.emit(event));
  }

  /** Resolves when it is durable. */
  checkpoint(state: Json): Promise<void> {
    this.#write({ checkpoint: toJsonText(state, "checkpoint", this.#attempt.parts.documentLimit) });
    return new Promise((resolve, reject) => this.#await(resolve, reject));
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.#logLines >= LOG_LINES_LIMIT) return;
    const { row } = this.#attempt;
    const { id, attempt } = row;
    const at = this.#attempt.parts.clock.now();
    const line: LogLine = {
      at,
      attempt,
      message: scrubWords(String(message), row).slice(0, LONGEST_MESSAGE),
      ...(fields && { fields: scrubNote(fields, row) }),
    };
    const text = toJsonText(line, "log", LOG_LINE_LIMIT);
    this.#logLines += 1;
    this.#logSize += text.length;
    const isFull = this.#logLines === LOG_LINES_LIMIT || this.#logSize > LOG_SIZE_LIMIT;
    if (isFull) this.#logLines = LOG_LINES_LIMIT;
    const log = isFull ? { at, attempt, message: LOG_IS_FULL } : (JSON.parse(text) as Json);
    this.#effects ??= [];
    this.#effects.push({ log, job: id });
    this.#push();
  }

  #write(documents: JobDocuments): void {
    this.#documents = { ...this.#documents, ...documents };
    this.#push();
  }

  #await(resolve: () => void, reject: (error: unknown) => void = () => {}): void {
    this.#waiting ??= [];
    this.#waiting.push({ resolve, reject });
  }

  #push(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    const { id } = this.#attempt.row;
    let taken: NoteContent | undefined;
    this.#queue.push({
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
