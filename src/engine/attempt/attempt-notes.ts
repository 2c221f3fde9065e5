import { progressText } from "../../core/job/job-progress.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import type { EngineContext } from "../context.ts";
import { type NoteContent, type NotedAttempt, UnsentNotes } from "./unsent-notes.ts";

/** Progress, checkpoints and log lines that an attempt reports before its verdict. */
export class AttemptNotes {
  readonly #context: EngineContext;
  readonly #attempt: NotedAttempt;
  readonly #unsent: UnsentNotes;

  constructor(context: EngineContext, writer: CommitQueue, attempt: NotedAttempt) {
    this.#context = context;
    this.#attempt = attempt;
    this.#unsent = new UnsentNotes(writer, attempt);
  }

  progress(fraction: number, note: Json | undefined): void {
    const { bus, clock, documentLimit, recorder } = this.#context;
    const progress = progressText(fraction, note, documentLimit);
    this.#unsent.write({ progress }, recorder.progress(this.#attempt.row, progress, clock.now()));
    if (!bus.wants("job.progress")) return;
    const event = {
      ...bus.detail(this.#attempt.row, "job.progress", clock.now()),
      progress: JSON.parse(progress),
    };
    this.#unsent.onDurable(() => bus.emit(event));
  }

  checkpoint(state: Json): Promise<void> {
    this.#unsent.write({ checkpoint: toJsonText(state, "checkpoint", this.#context.documentLimit) });
    return this.#unsent.durable();
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    this.#unsent.log(this.#context.clock.now(), message, fields);
  }

  /** Takes the notes that no commit has, so that they are committed with the verdict. */
  take(): NoteContent | undefined {
    return this.#unsent.take();
  }
}
