/** The two writes of an attempt: its start mark, and its verdict. */

import { decide } from "../../core/job/decide/decide.ts";
import { imageOf, type LifecycleEvent } from "../../core/job/decide/decision.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Outcome, Refused, Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import type { AttemptTrace } from "../../ports/trace.ts";
import { announce, announceEvents, wakeAfterStart } from "../commit/announce.ts";
import { STALE_TRIES } from "../commit/commit.ts";
import type { CommitQueue, Write } from "../commit/commit-queue.ts";
import { type Decided, type DecidedJob, unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import type { NoteContent } from "./attempt-notes.ts";

export interface MarkedAttempt {
  readonly parts: EngineContext;
  readonly isOver: boolean;
  row: JobRow;
  changed(): void;
  refused(outcome: Refused): void;
}

const STARTED: readonly LifecycleEvent[] = [{ name: "job.started" }];

/**
 * Commits that an attempt has started. After that, a crash of this process spends the attempt (SEMANTICS 4.3). An attempt
 * that ends before its mark is due needs none.
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

  /** Whether it is unknown if the store has the mark: its reply was lost, or the row changed before it. */
  get isUnsure(): boolean {
    return this.#isUnsure;
  }

  /** Takes from the row, loaded under the same fence, whether the store has the mark. */
  learn(row: JobRow): void {
    this.#isUnsure = false;
    if (row.startedAt === null) return;
    this.#state = "written";
    this.#announce();
  }

  /** The revision of the row after this mark, for the write that follows it. */
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
        // `unitOf` adds the start to its rate limit only if the row it gets is not started.
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

  /** The committed start is out of date: commits the new one. */
  again(): void {
    this.#isUnsure = false;
    this.#state = "unwritten";
    this.write();
  }

  /** The stored row does not have the mark: commits it now, because the sweep may end the job at any moment. */
  redo(): void {
    if (this.#state !== "queued") this.again();
  }

  /** The stored row has the mark, although its reply was lost. */
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

const LOAD_AGAIN = 100;

interface AttemptWriteOptions {
  readonly context: EngineContext;
  readonly queue: CommitQueue;
  readonly row: JobRow;
  readonly event: JobEvent;
  readonly decision: Decided;
  readonly at: Instant;
  /** Notes that are not committed yet. */
  readonly notes?: NoteContent | undefined;
  /** The start of the attempt, which may not be committed yet. */
  readonly mark?: StartMark;
  readonly trace?: AttemptTrace | undefined;
}

/**
 * The write of a verdict, or of a release before the start. If an outsider changed the row meanwhile, for example by an
 * extension, it decides again on the new row. It is its own DecidedJob, which saves an object per job.
 */
export class AttemptWrite implements Write, DecidedJob {
  readonly id: string;
  readonly by = "holder";
  row: JobRow;
  decision: Decided;
  readonly #options: AttemptWriteOptions;
  #redecisions = 0;

  constructor(options: AttemptWriteOptions) {
    this.id = options.row.id;
    this.row = options.row;
    this.decision = options.decision;
    this.#options = options;
  }

  get at(): Instant {
    return this.#options.at;
  }

  get documents(): JobDocuments | undefined {
    return this.#options.notes?.documents;
  }

  get effects(): readonly Effect[] | undefined {
    return this.#options.notes?.effects;
  }

  get start(): readonly LifecycleEvent[] | undefined {
    return this.#options.mark?.unrecorded;
  }

  get trace(): AttemptTrace | undefined {
    return this.#options.trace;
  }

  unit(): Unit | null {
    const { context, queue, mark } = this.#options;
    if (mark?.isUnsure && context.recorder.isOn) {
      queue.expect(this.#learn(mark));
      return null;
    }
    return unitOf(context, this);
  }

  /** Reads whether the start was committed. Without this, a start whose reply was lost would be recorded twice. */
  async #learn(mark: StartMark): Promise<void> {
    const row = await this.#reload();
    if (!row) return;
    mark.learn(row);
    this.#options.queue.push(this);
  }

  done(outcome: Outcome): void {
    if (!outcome.ok && outcome.because === "stale" && this.#redecisions++ < STALE_TRIES) {
      this.#options.queue.expect(this.#redecide());
      return;
    }
    const { context, notes } = this.#options;
    notes?.settle?.(outcome);
    if (outcome.ok) announce(context, this);
    else this.#refused(outcome.because === "gone");
  }

  #refused(isGone: boolean): void {
    const { bus, clock, counters } = this.#options.context;
    const { row, at, trace } = this;
    trace?.settled({ state: "lost", events: [], at, committedAt: clock.now() });
    counters.add(isGone ? "unknown" : "lost");
    if (!isGone && bus.wants("job.lost")) bus.emit(bus.detail(row, "job.lost", at));
  }

  async #redecide(): Promise<void> {
    const { context, queue, event, at } = this.#options;
    const { random } = context;
    const row = await this.#reload();
    if (!row) return;
    this.row = this.#carriedOver(row);
    const again = decide(this.row, event, at, random);
    // On the new row the start may be allowed, but the worker has freed the slot. Release the job.
    const isEntry = event.type === "start" && again.ok && again.image.state === "active";
    const decision = isEntry ? decide(this.row, { type: "release" }, at, random) : again;
    if (!decision.ok) {
      this.done({ ok: false, because: "lost", at: row });
      return;
    }
    this.decision = decision;
    queue.push(this);
  }

  /** Loads the row. Returns undefined if the fence changed, which ends the write, or if the queue is abandoned. */
  async #reload(): Promise<JobRow | undefined> {
    const row = await this.#load();
    if (row === undefined || row?.fence === this.row.fence) return row ?? undefined;
    this.done({ ok: false, because: row ? "lost" : "gone", at: row });
    return undefined;
  }

  async #load(): Promise<JobRow | null | undefined> {
    const { context, queue } = this.#options;
    while (!queue.isAbandoned) {
      try {
        const [row] = await context.store.jobs.load([this.id]);
        return row ?? null;
      } catch (error) {
        context.storeFailed(error, "load");
        await rest(context.system, LOAD_AGAIN);
      }
    }
    return undefined;
  }

  /** The new row with what only this process knows: a start that is not committed, and a signal that was given. */
  #carriedOver(row: JobRow): JobRow {
    const { event } = this.#options;
    // A release before the start, as far as this worker knows. The row knows better: the mark may be in it, its reply lost.
    if (event.type === "start" || this.row.startedAt === null) return row;
    const { attempt, startedAt, waitAt, softAt, hardAt, stallAt, heartbeat, totalAt } = this.row;
    const started = { ...row, attempt, startedAt, waitAt, policy: row.policy ?? this.row.policy };
    // The soft signal fixes the cause (SEMANTICS 3.3): a later extension does not change it.
    const isSignalled =
      event.type === "expire" || event.type === "stall" || ("signalled" in event && event.signalled);
    if (isSignalled) return { ...started, softAt, hardAt, stallAt, heartbeat, totalAt };
    return row.startedAt === null ? { ...started, softAt, hardAt, stallAt, heartbeat } : started;
  }
}
