import { isHolder, isTooLate, type Sender } from "../../core/job/holder.ts";
import type { JobDocuments, JobId, JobOptions, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { progressText } from "../../core/job/progress.ts";
import { rereadImage } from "../../core/job/verdict.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import type { Effect } from "../../ports/store.ts";
import type { LogLine } from "../draft.ts";
import type { Parts } from "../parts.ts";
import type { RemoteBeats } from "./beats.ts";
import type { Commits } from "./commits.ts";
import type { HeldRows } from "./held-rows.ts";
import type { Reported } from "./reported.ts";

/** What is kept of a progress report. */
export interface ProgressNote {
  readonly value: number;
  readonly note?: Json;
}

/** A saved state and how often it was saved. */
export interface SavedCheckpoint {
  readonly state: Json;
  readonly sequence: number;
}

const LONGEST_LOG_LINE = 16_000;
const TRIES = 10;

export function progressOf(row: JobRow): ProgressNote | null {
  return row.progress === null ? null : (JSON.parse(row.progress) as ProgressNote);
}

/** How often the state was saved is the wire's business alone, so it lies beside the state and not in it. */
export function checkpointOf(row: JobRow): SavedCheckpoint | null {
  if (row.checkpoint === null) return null;
  const sequence = row.options?.wire?.sequence;
  return { state: JSON.parse(row.checkpoint) as Json, sequence: typeof sequence === "number" ? sequence : 1 };
}

/** What a remote worker reports before its verdict: progress, checkpoints and log lines. Each counts as a beat. */
export class RemoteNotes {
  readonly #parts: Parts;
  readonly #held: HeldRows;
  readonly #commits: Commits;
  readonly #beats: RemoteBeats;

  constructor(parts: Parts, held: HeldRows, commits: Commits, beats: RemoteBeats) {
    this.#parts = parts;
    this.#held = held;
    this.#commits = commits;
    this.#beats = beats;
  }

  /** Progress never goes back within an attempt; what is answered is what stands. */
  async progress(id: JobId, sender: Sender, fraction: number, note: Json | undefined): Promise<Reported> {
    const { bus, clock, documentLimit, recorder } = this.#parts;
    return this.#write(id, sender, (row) => {
      const before = progressOf(row)?.value ?? 0;
      const progress = progressText(Math.min(1, Math.max(before, fraction)), note, documentLimit);
      const event = recorder.progress(row, progress, clock.now());
      return {
        documents: { progress },
        ...(event && { effects: [event] }),
        told: () => {
          if (!bus.wants("job.progress")) return;
          bus.emit({ ...bus.detail(row, "job.progress", clock.now()), progress: JSON.parse(progress) });
        },
      };
    });
  }

  log(id: JobId, sender: Sender, lines: readonly Omit<LogLine, "attempt">[]): Promise<Reported> {
    return this.#write(id, sender, (row) => ({
      documents: {},
      effects: lines.map((line) => {
        const text = toJsonText({ ...line, attempt: row.attempt }, "lines", LONGEST_LOG_LINE);
        return { log: JSON.parse(text) as Json, job: row.id };
      }),
    }));
  }

  async #write(
    id: JobId,
    sender: Sender,
    make: (row: JobRow) => {
      documents: JobDocuments;
      effects?: readonly Effect[];
      told?: () => void;
    },
  ): Promise<Reported> {
    let row: JobRow | null = this.#held.get(id) ?? (await this.#load(id));
    for (let tries = 0; tries < TRIES; tries++) {
      if (row === null) return { ok: false, because: "gone", row };
      if (isHolder(row, sender) && !isTooLate(row, this.#parts.clock.now())) {
        const { documents, effects, told } = make(row);
        const outcome = await this.#commits.documents(row, documents, effects);
        if (outcome.ok) {
          const written = { ...row, ...documents };
          if (this.#held.get(id) === row) this.#held.set(written);
          await this.#beats.alive(written);
          told?.();
          return { ok: true, row: written };
        }
      } else if (this.#held.get(id) !== row) return { ok: false, because: "lost", row };
      this.#held.delete(id);
      row = await this.#load(id);
    }
    return { ok: false, because: "lost", row };
  }

  /**
   * Saves or clears the state that the next attempt begins with. A running attempt's holder saves under its fence; on
   * a job that waits, anybody who may work on it may prepare one. Null clears it, and the count begins anew.
   */
  async checkpoint(id: JobId, sender: Sender, state: Json | null): Promise<Reported> {
    const { documentLimit, store, clock, wakeSweepAt } = this.#parts;
    for (let tries = 0; tries < TRIES; tries++) {
      const row = await this.#load(id);
      if (row === null) return { ok: false, because: "gone", row };
      const isClearing = state === null;
      if (isClearing && row.checkpoint === null) return { ok: true, row };
      const isRefused = row.state === "active" ? !isHolder(row, sender) : sender.fence !== undefined;
      const isOver = isTerminal(row.state) && !isClearing;
      if (isRefused || isOver || isTooLate(row, clock.now())) return { ok: false, because: "lost", row };
      const checkpoint = isClearing ? null : toJsonText(state, "state", documentLimit);
      const sequence = isClearing ? 0 : (checkpointOf(row)?.sequence ?? 0) + 1;
      const options: JobOptions = { ...row.options, wire: { ...row.options?.wire, sequence } };
      const documents = { checkpoint, options };
      const image = rereadImage(row);
      const job = { id, fence: row.fence, rev: row.rev, image, documents };
      const [outcome] = await store.commit([{ job }], { now: clock.now() });
      if (!outcome?.ok) continue;
      if (image.wakeAt !== null) wakeSweepAt(image.wakeAt);
      this.#held.delete(id);
      const written = { ...row, ...documents, rev: row.rev + 1 };
      if (row.state === "active") await this.#beats.alive(written);
      return { ok: true, row: written };
    }
    return { ok: false, because: "lost", row: null };
  }

  async #load(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#parts.store.jobs.load([id]);
    return row ?? null;
  }
}
