import { decide } from "../../core/job/decide/decide.ts";
import { extendedAttempt } from "../../core/job/decide/operator-rules.ts";
import { writtenRow } from "../../core/job/decide/written-row.ts";
import type { JobRow } from "../../core/job/job.ts";
import { restarted } from "../../core/job/policy/deadlines.ts";
import type { AbortReason } from "../../core/job/reasons.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Refused } from "../../ports/store.ts";
import type { AttemptTrace } from "../../ports/trace.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import type { Decided } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { AttemptNotes } from "./attempt-notes.ts";
import type { AttemptScope } from "./attempt-scope.ts";
import { AttemptWrite, type MarkedAttempt, StartMark } from "./attempt-writes.ts";
import type { Processor } from "./processor.ts";
import { type RunDeps, RunningAttempt, type Verdict } from "./running-attempt.ts";

/** What an attempt needs from its local worker. */
export interface AttemptDeps extends RunDeps {
  readonly parts: EngineContext;
  readonly writer: CommitQueue;
  /** An outsider wrote the row: load it and call `refresh`. */
  changed(attempt: Attempt): void;
  /** The handler gave a beat: send `unsentStallAt` to the store in time. */
  beaten(attempt: Attempt): void;
}

/**
 * An attempt of a job that was claimed from the store. The stored row has the deadlines. This object watches them while
 * the handler runs, and writes the verdict.
 */
export class Attempt extends RunningAttempt<AttemptDeps> implements MarkedAttempt {
  readonly mark: StartMark;
  /** The `stallAt` of the handler's last beat, if the store does not have it yet. */
  unsentStallAt: Instant | undefined;
  #notes: AttemptNotes | undefined;
  #trace: AttemptTrace | undefined;

  constructor(host: AttemptDeps, processor: Processor, row: JobRow, start: Decided, enteredAt: number) {
    // The start is not committed yet, so the store still has the revision of the claim.
    super(host, processor, writtenRow(row, start, row.rev), enteredAt);
    this.mark = new StartMark(this, host.writer);
  }

  protected override enter(scope: AttemptScope): void {
    this.#trace = this.parts.tracing?.enter(this.row);
    if (this.#trace) this.#enterTraced(this.#trace, scope);
    else super.enter(scope);
  }

  #enterTraced(trace: AttemptTrace, scope: AttemptScope): void {
    trace.run(() => super.enter(scope));
  }

  protected override submit(event: Verdict): void {
    const { parts: context, writer: queue } = this.host;
    const at = context.clock.now();
    const decision = decide(this.row, event, at, context.random);
    if (!decision.ok) {
      context.logger.error(
        { job: this.row.id, event: event.type, because: decision.because },
        "the verdict was refused by the rules; the sweep will end the attempt",
      );
      return;
    }
    const { mark } = this;
    const row = mark.nextRev === this.row.rev ? this.row : { ...this.row, rev: mark.nextRev };
    const notes = this.#notes?.take();
    const trace = this.#trace;
    queue.push(new AttemptWrite({ context, queue, row, event, decision, at, mark, notes, trace }));
  }

  protected override announceLost(now: Instant): void {
    this.#trace?.settled({ state: "lost", events: [], at: now, committedAt: now });
    super.announceLost(now);
  }

  protected override abort(reason: AbortReason): void {
    this.#trace?.aborted(this.reason ?? reason);
    super.abort(reason);
  }

  protected override beaten(stallAt: Instant): void {
    this.unsentStallAt = stallAt;
    this.host.beaten(this);
  }

  protected override get notes(): AttemptNotes {
    this.#notes ??= new AttemptNotes(this.host.writer, this);
    return this.#notes;
  }

  /** Counts an attempt whose start was committed first from now, and commits that. Returns false if its time is up. */
  startAnew(): boolean {
    const { clock } = this.parts;
    // The sweep may also end an attempt at `stallAt`, so the handler must be entered before it.
    const endsAt = earlier(this.row.softAt, this.row.stallAt);
    const row =
      endsAt !== null && clock.upper() >= endsAt ? null : restarted(this.row, clock.now(), clock.anchor());
    if (!row) return false;
    this.reschedule(row);
    this.mark.again();
    return true;
  }

  changed(): void {
    this.host.changed(this);
  }

  /** A write of this attempt was refused, because the fence changed. */
  refused(outcome: Refused): void {
    this.stop(outcome.at?.state === "cancelled" ? "cancelled" : "lost");
  }

  /** Takes over the limits of a row that changed under the same fence, for example by an extension. */
  refresh(row: JobRow): void {
    if (this.isOver || row.fence !== this.row.fence) return;
    // A signal that was given stays (SEMANTICS 3.3): take over only the revision.
    if (this.reason) this.row = { ...this.row, rev: row.rev };
    else this.reschedule(extendedAttempt(this.row, row, this.parts.clock.anchor()));
    if (row.startedAt === this.row.startedAt) this.mark.found();
    else this.mark.redo();
  }
}
