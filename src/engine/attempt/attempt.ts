import { restarted } from "../../core/job/deadlines.ts";
import { decide } from "../../core/job/decide.ts";
import type { JobRow } from "../../core/job/job.ts";
import { extendedAttempt } from "../../core/job/operator-rules.ts";
import type { AbortReason } from "../../core/job/reasons.ts";
import { writtenRow } from "../../core/job/written-row.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Refused } from "../../ports/store.ts";
import type { AttemptTrace } from "../../ports/trace.ts";
import type { CommitQueue } from "../commit/commit-queue.ts";
import type { Decided } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { AttemptNotes } from "./attempt-notes.ts";
import type { AttemptScope } from "./attempt-scope.ts";
import { AttemptWrite } from "./attempt-write.ts";
import type { Processor } from "./processor.ts";
import { type RunHost, RunningAttempt, type Verdict } from "./running-attempt.ts";
import { type MarkedAttempt, StartMark } from "./start-mark.ts";

/** What an attempt needs of the worker that runs it. */
export interface AttemptHost extends RunHost {
  readonly parts: EngineContext;
  readonly writer: CommitQueue;
  /** Somebody else wrote the row: it has to be read again. */
  changed(attempt: Attempt): void;
  /** The handler gave a sign of life that the store should hear of. */
  beaten(attempt: Attempt): void;
}

/**
 * An attempt of a job that was claimed from the store. The row there is the truth about its deadlines; this object only
 * watches them for as long as the handler runs, and writes its verdict.
 */
export class Attempt extends RunningAttempt<AttemptHost> implements MarkedAttempt {
  readonly mark: StartMark;
  /** The last beat of the handler that the store has not heard of. */
  unsentStallAt: Instant | undefined;
  #notes: AttemptNotes | undefined;
  #trace: AttemptTrace | undefined;

  constructor(host: AttemptHost, processor: Processor, row: JobRow, start: Decided) {
    // The start is not committed yet, so the revision in the store is still the one of the claim.
    super(host, processor, writtenRow(row, start, row.rev), host.parts.clock.elapsed());
    this.mark = new StartMark(this, host.writer);
  }

  protected override enter(scope: AttemptScope): void {
    this.#trace = this.parts.tracing?.enter(this.row);
    if (this.#trace) this.#trace.run(() => super.enter(scope));
    else super.enter(scope);
  }

  protected override judged(event: Verdict): void {
    const { parts: context, writer: queue } = this.host;
    const at = context.clock.now();
    const decision = decide(this.row, event, at, context.random);
    if (!decision.ok) {
      context.logger.error(
        { job: this.row.id, event: event.type, because: decision.because },
        "a verdict was refused",
      );
      return;
    }
    const { mark } = this;
    const row = mark.nextRev === this.row.rev ? this.row : { ...this.row, rev: mark.nextRev };
    const notes = this.#notes?.take();
    const trace = this.#trace;
    queue.push(new AttemptWrite({ context, queue, row, event, decision, at, mark, notes, trace }));
  }

  protected override tellLost(now: Instant): void {
    this.#trace?.settled({ state: "lost", events: [], at: now, committedAt: now });
    super.tellLost(now);
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
    this.#notes ??= new AttemptNotes(this.parts, this.host.writer, this);
    return this.#notes;
  }

  /** Lets the clocks of a start that was committed first run from now; false if its time is up. The store hears of it with the next marks. */
  startAnew(): boolean {
    const { clock } = this.parts;
    // The sweep may end an attempt at its silence too, so that is the lease under which the handler is entered.
    const endsAt = earlier(this.row.softAt, this.row.stallAt);
    const row =
      endsAt !== null && clock.upper() >= endsAt ? null : restarted(this.row, clock.now(), clock.anchor());
    if (!row) return false;
    this.reschedule(row);
    this.mark.again();
    return true;
  }

  /** Somebody else wrote the row under the same fence: it has to be read again. */
  changed(): void {
    this.host.changed(this);
  }

  /** A write of this attempt was refused: the fence is no longer ours. */
  refused(outcome: Refused): void {
    this.stop(outcome.at?.state === "cancelled" ? "cancelled" : "lost");
  }

  /** The row changed under the same fence (an extension): its limits hold from now on. */
  refresh(row: JobRow): void {
    if (this.isOver || row.fence !== this.row.fence) return;
    // What was signalled stays signalled (SEMANTICS 3.3): only the revision is news then.
    if (this.reason) this.row = { ...this.row, rev: row.rev };
    else this.reschedule(extendedAttempt(this.row, row, this.parts.clock.anchor()));
    if (row.startedAt === this.row.startedAt) this.mark.found();
    else this.mark.redo();
  }
}
