import { decide } from "../../core/job/decide.ts";
import type { LifecycleEvent } from "../../core/job/decision.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Outcome, Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import type { AttemptTrace } from "../../ports/trace.ts";
import { announce } from "../commit/announce.ts";
import { STALE_TRIES } from "../commit/commit.ts";
import type { CommitQueue, Write } from "../commit/commit-queue.ts";
import { type Decided, type DecidedJob, unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import type { StartMark } from "./start-mark.ts";
import type { NoteContent } from "./unsent-notes.ts";

const LOAD_AGAIN = 100;

interface AttemptWriteOptions {
  readonly context: EngineContext;
  readonly queue: CommitQueue;
  readonly row: JobRow;
  readonly event: JobEvent;
  readonly decision: Decided;
  readonly at: Instant;
  /** Notes that no commit has taken yet. */
  readonly notes?: NoteContent | undefined;
  /** The start of the attempt, which no commit may have recorded yet. */
  readonly mark?: StartMark;
  readonly trace?: AttemptTrace | undefined;
}

/**
 * A verdict on its way into the store. If an outsider changed the row meanwhile (an extension, a waiter), it is decided
 * again on the new row. It is its own DecidedJob, so that a job costs no more objects than it must.
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
    // A start that was refused may be allowed by now, but no worker is ready to enter the handler.
    const isEntry = event.type === "start" && again.ok && again.image.state === "active";
    const decision = isEntry ? decide(this.row, { type: "release" }, at, random) : again;
    if (!decision.ok) {
      this.done({ ok: false, because: "lost", at: row });
      return;
    }
    this.decision = decision;
    queue.push(this);
  }

  /** Loads the row. Returns undefined if another fence holds, which ends the write, or if the queue is abandoned. */
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

  /** The row as it is now, with what only this process knows: a start that was not marked yet, and the signal it gave. */
  #carriedOver(row: JobRow): JobRow {
    const { event } = this.#options;
    const { attempt, startedAt, waitAt, softAt, hardAt, stallAt, heartbeat, totalAt } = this.row;
    const started = { ...row, attempt, startedAt, waitAt, policy: row.policy ?? this.row.policy };
    // The cause is fixed at the soft signal (SEMANTICS 3.3): an extension that came after it changes nothing about it.
    const isSignalled =
      event.type === "expire" || event.type === "stall" || ("signalled" in event && event.signalled);
    // Nothing was started yet.
    if (event.type === "start") return row;
    if (isSignalled) return { ...started, softAt, hardAt, stallAt, heartbeat, totalAt };
    return row.startedAt === null ? { ...started, softAt, hardAt, stallAt, heartbeat } : started;
  }
}
