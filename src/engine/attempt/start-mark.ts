import { imageOf, type LifecycleEvent } from "../../core/job/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Outcome, Refused } from "../../ports/store.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import { gateEffects, startOverAt } from "../commit/decision-effects.ts";
import { withEvents } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";

/** What a mark needs of the attempt whose start it tells. */
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
  #isTold = false;
  #isUnsure = false;

  constructor(attempt: MarkedAttempt, writer: CommitQueue) {
    this.#attempt = attempt;
    this.#writer = writer;
  }

  get isWritten(): boolean {
    return this.#state === "written";
  }

  /** What the verdict has to tell of the start: nothing once a commit has told of it. */
  get untold(): readonly LifecycleEvent[] | undefined {
    return this.#isTold ? undefined : STARTED;
  }

  /** Whether it may be in the store although nobody said so: its reply was lost, or somebody else was faster. */
  get isUnsure(): boolean {
    return this.#isUnsure;
  }

  /** The row as it was read under the same fence, when the attempt is over, says whether the mark is in it. */
  learn(row: JobRow): void {
    this.#isUnsure = false;
    if (row.startedAt === null) return;
    this.#state = "written";
    this.#tell();
  }

  /** The revision that a write behind this mark will find. */
  get nextRev(): number {
    const { rev } = this.#attempt.row;
    return this.#state === "sent" ? rev + 1 : rev;
  }

  /** Commits that the attempt has started. */
  write(): void {
    if (this.#attempt.isOver || this.#state !== "unwritten") return;
    this.#state = "queued";
    this.#writer.push({
      id: this.#attempt.row.id,
      unit: () => {
        if (this.#attempt.isOver || this.#state !== "queued") return null;
        this.#state = "sent";
        const { row, parts } = this.#attempt;
        const { id, fence, rev, policy } = row;
        const job = { id, fence, rev, image: imageOf(row), documents: { policy } };
        const effects = row.limitKey === null ? undefined : gateEffects({ ...row, startedAt: null }, row);
        const unit = effects ? { job, effects } : { job };
        if (this.#isTold) return unit;
        return withEvents(unit, parts.recorder.recorded(row, { events: STARTED }, row.startedAt as Instant));
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
    this.#tell();
  }

  /** The start is committed: from here on a crash spends the attempt. */
  written(): void {
    const { row, parts } = this.#attempt;
    this.#state = "written";
    this.#attempt.row = { ...row, rev: row.rev + 1 };
    const overAt = startOverAt(row);
    if (overAt !== null) parts.wakeSweepAt(overAt);
    this.#tell();
  }

  #tell(): void {
    const { row, parts } = this.#attempt;
    if (this.#isTold) return;
    this.#isTold = true;
    parts.counters.record(row, STARTED, row.startedAt as Instant);
    parts.bus.announce(row, STARTED, row.startedAt as Instant);
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
