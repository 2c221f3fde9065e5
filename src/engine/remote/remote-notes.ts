import { isHolder, isTooLate, type Sender } from "../../core/job/decide/holder.ts";
import type { CheckpointNote } from "../../core/job/documents/checkpoint.ts";
import { progressOf, progressText } from "../../core/job/documents/job-progress.ts";
import { scrubNote, scrubWords } from "../../core/job/documents/redaction.ts";
import type { JobDocuments, JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { type Json, LOG_LINE_LIMIT, LOG_LINES_LIMIT, LOG_SIZE_LIMIT, toJsonText } from "../../core/schema.ts";
import type { Effect } from "../../ports/store.ts";
import { LOG_IS_FULL, type LogLine } from "../attempt/attempt-notes.ts";
import { STALE_TRIES } from "../commit/commit.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import type { EngineContext } from "../context.ts";
import { writeCheckpoint } from "../operations/checkpoints.ts";
import type { RemoteBeats } from "./remote-beats.ts";
import type { Reported } from "./report-types.ts";
import type { RowCache } from "./row-cache.ts";

/** Attempts whose log lines are counted. */
const MOST_COUNTED = 10_000;

interface Logged {
  readonly lines: number;
  readonly size: number;
}

/** Progress, checkpoints and log lines that a remote worker reports before its verdict. Each counts as a beat. */
export class RemoteNotes {
  readonly #context: EngineContext;
  readonly #rowCache: RowCache;
  readonly #commits: CommitQueue;
  readonly #beats: RemoteBeats;
  /** By job and fence. */
  readonly #logged = new Map<string, Logged>();

  constructor(context: EngineContext, rowCache: RowCache, commits: CommitQueue, beats: RemoteBeats) {
    this.#context = context;
    this.#rowCache = rowCache;
    this.#commits = commits;
    this.#beats = beats;
  }

  /** Progress never goes back within an attempt. Returns the row with the stored progress. */
  async progress(id: JobId, sender: Sender, fraction: number, note: Json | undefined): Promise<Reported> {
    const { bus, clock, documentLimit, recorder } = this.#context;
    return this.#write(id, sender, (row) => {
      const before = progressOf(row)?.value ?? 0;
      const progress = progressText(
        Math.min(1, Math.max(before, fraction)),
        scrubNote(note, row),
        documentLimit,
      );
      const event = recorder.progress(row, progress, clock.now());
      return {
        documents: { progress },
        ...(event && { effects: [event] }),
        announce: () => {
          if (!bus.wants("job.progress")) return;
          bus.emit({ ...bus.detail(row, "job.progress", clock.now()), progress: JSON.parse(progress) });
        },
      };
    });
  }

  log(id: JobId, sender: Sender, lines: readonly Omit<LogLine, "attempt">[]): Promise<Reported> {
    return this.#write(id, sender, (row) => {
      const key = `${row.id} ${row.fence}`;
      let { lines: count, size } = this.#logged.get(key) ?? { lines: 0, size: 0 };
      const effects: Effect[] = [];
      for (const said of lines) {
        const { message, fields } = said;
        const line = {
          ...said,
          message: scrubWords(message, row),
          ...(fields && { fields: scrubNote(fields, row) }),
        };
        if (count >= LOG_LINES_LIMIT) break;
        const text = toJsonText({ ...line, attempt: row.attempt }, "lines", LOG_LINE_LIMIT);
        count += 1;
        size += text.length;
        const isFull = count === LOG_LINES_LIMIT || size > LOG_SIZE_LIMIT;
        if (isFull) count = LOG_LINES_LIMIT;
        const last = { at: line.at, attempt: row.attempt, message: LOG_IS_FULL };
        effects.push({ log: isFull ? last : (JSON.parse(text) as Json), job: row.id });
      }
      return { documents: {}, effects, announce: () => this.#count(key, { lines: count, size }) };
    });
  }

  /** The oldest counts are dropped: the store keeps the last 1,000 lines of a job anyway. */
  #count(key: string, logged: Logged): void {
    this.#logged.delete(key);
    this.#logged.set(key, logged);
    for (const oldest of this.#logged.keys()) {
      if (this.#logged.size <= MOST_COUNTED) return;
      this.#logged.delete(oldest);
    }
  }

  async #write(
    id: JobId,
    sender: Sender,
    make: (row: JobRow) => {
      documents: JobDocuments;
      effects?: readonly Effect[];
      announce?: () => void;
    },
  ): Promise<Reported> {
    let row: JobRow | null = this.#rowCache.get(id) ?? (await this.#load(id));
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      if (row === null) return { ok: false, because: "gone", row };
      if (isHolder(row, sender) && !isTooLate(row, this.#context.clock.now())) {
        const { documents, effects, announce } = make(row);
        const job = { id, fence: row.fence, documents };
        const outcome = await this.#commits.commitUnit(effects ? { job, effects } : { job });
        if (outcome.ok) {
          const written = { ...row, ...documents };
          if (this.#rowCache.get(id) === row) this.#rowCache.set(written);
          await this.#beats.alive(written);
          announce?.();
          return { ok: true, row: written };
        }
      } else if (this.#rowCache.get(id) !== row) return { ok: false, because: "lost", row };
      this.#rowCache.delete(id);
      row = await this.#load(id);
    }
    return { ok: false, because: "lost", row };
  }

  /**
   * Saves the state that the next attempt begins with; null clears it and restarts its count. On a running job only the
   * holder of its fence may save. On a waiting job every caller that sends no fence may.
   */
  async checkpoint(
    id: JobId,
    sender: Sender,
    state: Json | null,
    note: CheckpointNote = {},
  ): Promise<Reported> {
    const { clock } = this.#context;
    const mayWrite = (row: JobRow) => {
      const isRefused = row.state === "active" ? !isHolder(row, sender) : sender.fence !== undefined;
      const isOver = isTerminal(row.state) && state !== null;
      return !isRefused && !isOver && !isTooLate(row, clock.now());
    };
    const saved = await writeCheckpoint(this.#context, id, state, mayWrite, note);
    if (!saved.ok) return saved;
    this.#rowCache.delete(id);
    if (saved.row.state === "active") await this.#beats.alive(saved.row);
    return saved;
  }

  async #load(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#context.store.jobs.load([id]);
    return row ?? null;
  }
}
