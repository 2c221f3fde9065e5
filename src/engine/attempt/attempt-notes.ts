import { progressText } from "../../core/job/job-progress.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import type { EngineContext } from "../context.ts";
import { type NoteContent, type NotedAttempt, UnsentNotes } from "./unsent-notes.ts";

/** What an attempt reports before its verdict: progress, checkpoints and log lines, with the event that tells of them. */
export class AttemptNotes {
  readonly #parts: EngineContext;
  readonly #attempt: NotedAttempt;
  readonly #draft: UnsentNotes;

  constructor(parts: EngineContext, writer: CommitQueue, attempt: NotedAttempt) {
    this.#parts = parts;
    this.#attempt = attempt;
    this.#draft = new UnsentNotes(writer, attempt);
  }

  progress(fraction: number, note: Json | undefined): void {
    const { bus, clock, documentLimit, recorder } = this.#parts;
    const progress = progressText(fraction, note, documentLimit);
    this.#draft.write({ progress }, recorder.progress(this.#attempt.row, progress, clock.now()));
    if (!bus.wants("job.progress")) return;
    const event = {
      ...bus.detail(this.#attempt.row, "job.progress", clock.now()),
      progress: JSON.parse(progress),
    };
    this.#draft.onDurable(() => bus.emit(event));
  }

  /** Resolves when it is durable. */
  checkpoint(state: Json): Promise<void> {
    this.#draft.write({ checkpoint: toJsonText(state, "checkpoint", this.#parts.documentLimit) });
    return this.#draft.durable();
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    this.#draft.log(this.#parts.clock.now(), message, fields);
  }

  /** Hands over what is not on its way yet, so that it travels with the verdict. */
  take(): NoteContent | undefined {
    return this.#draft.take();
  }
}
