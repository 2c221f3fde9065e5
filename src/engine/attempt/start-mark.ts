import { imageOf, type LifecycleEvent } from "../../core/job/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Outcome, Refused } from "../../ports/store.ts";
import { announceEvents, wakeAfterStart } from "../commit/announce.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import { unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";

/** What a mark needs of the attempt whose start it records. */
export interface MarkedAttempt {
  readonly parts: EngineContext;
  readonly isOver: boolean;
  row: JobRow;
  changed(): void;
  refused(outcome: Refused): void;
}

const STARTED: readonly LifecycleEvent[] = [{ name: "job.started" }];

/**
 * Whether the store knows that an attempt has started. Once it does, a crash of this process spends the attempt
 * (SEMANTICS 4.3); an attempt that ends before its mark is due never needs one.
 */
export class StartMark {
  readonly #attempt: MarkedAttempt;
  readonly #writer: CommitQueue;
  #state: "unwritten" | "queued" | "sent" | "written" = "unwritten";
  #isRecorded = false;
  #isUnsure = false;

  constructor(attempt: MarkedAttempt, writer: CommitQueue) {
    this.#attempt = attempt;
    this.#writer = writer;
  }

  get isWritten(): boolean {
    return this.#state === "written";
  }

  /** Start events that the verdict must record; undefined once they are committed. */
  get unrecorded(): readonly LifecycleEvent[] | undefined {
    return this.#isRecorded ? undefined : STARTED;
  }

  /** Whether the store may have the mark without our knowing: its reply was lost, or the row changed before it. */
  get isUnsure(): boolean {
    return this.#isUnsure;
  }

  /** Reads from the row, loaded under the same fence after the attempt, whether the mark is in the store. */
  learn(row: JobRow): void {
    this.#isUnsure = false;
    if (row.startedAt === null) return;
    this.#state = "written";
    this.#announce();
  }

  /** The revision that a write behind this mark will find. */
  get nextRev(): number {
    const { rev } = this.#attempt.row;
    return this.#state === "sent" ? rev + 1 : rev;
  }

  /** Commits that the attempt has started. */
  write(): void {
    if (this.#attempt.isOver || this.#state !== "unwritten") return;
    // The store may have the mark already. Written again, it would announce the start twice, so the row is read first.
    if (this.#isUnsure) {
      this.#attempt.changed();
      return;
    }
    this.#state = "queued";
    this.#writer.push({
      id: this.#attempt.row.id,
      unit: () => {
        if (this.#attempt.isOver || this.#state !== "queued") return null;
        this.#state = "sent";
        const { row, parts } = this.#attempt;
        // A limit counts what starts now, so it must see the row before its start.
        const before = row.limitKey === null ? row : { ...row, startedAt: null };
        const events = this.unrecorded ?? [];
        const decision = {
          ok: true,
          image: imageOf(row),
          documents: { policy: row.policy },
          events,
        } as const;
        return unitOf(parts, { row: before, decision, at: row.startedAt as Instant, by: "holder" });
      },
      done: (outcome) => this.#done(outcome),
    });
  }

  /** The start that the store knows of is out of date. */
  again(): void {
    this.#isUnsure = false;
    this.#state = "unwritten";
    this.write();
  }

  /** The row that was read does not have the mark. It may be due any moment, so it is written at once. */
  redo(): void {
    if (this.#state !== "queued") this.again();
  }

  /** The row that was read has the mark, whose reply was lost. */
  found(): void {
    if (this.#state === "queued" || this.#state === "written") return;
    this.#isUnsure = false;
    this.#state = "written";
    this.#announce();
  }

  /** The start is committed: from here on a crash spends the attempt. */
  written(): void {
    const { row, parts } = this.#attempt;
    this.#state = "written";
    this.#attempt.row = { ...row, rev: row.rev + 1 };
    wakeAfterStart(parts, row);
    this.#announce();
  }

  #announce(): void {
    const { row, parts } = this.#attempt;
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    announceEvents(parts, row, STARTED, row.startedAt as Instant);
  }

  #done(outcome: Outcome): void {
    if (outcome.ok) this.written();
    else if (outcome.because === "stale") {
      this.#state = "unwritten";
      this.#isUnsure = true;
      this.#attempt.changed();
    } else this.#attempt.refused(outcome);
  }
}
