import { applied, decide } from "../../core/job/decide.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { Outcome, Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import type { AttemptTrace } from "../../ports/trace.ts";
import type { CommitQueue, Write } from "../commit/commit-queue.ts";
import { wakesOthers } from "../commit/decision-effects.ts";
import { type Decided, holdersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import type { StartMark } from "./start-mark.ts";
import type { NoteContent } from "./unsent-notes.ts";

const MOST_REDECISIONS = 10;
const LOAD_AGAIN = 100;

interface VerdictOptions {
  readonly parts: EngineContext;
  readonly writer: CommitQueue;
  readonly row: JobRow;
  readonly event: JobEvent;
  readonly decision: Decided;
  readonly at: Instant;
  readonly draft?: NoteContent | undefined;
  /** The start of the attempt, which no commit may have told of yet. */
  readonly mark?: StartMark;
  readonly trace?: AttemptTrace | undefined;
}

/**
 * A verdict on its way into the store. Events, counters and results follow only once it is committed. If an outsider
 * changed the row meanwhile (an extension, a waiter), it is decided anew on the row as it is now.
 */
export class VerdictWrite implements Write {
  readonly id: string;
  readonly #options: VerdictOptions;
  #row: JobRow;
  #decision: Decided;
  #redecisions = 0;

  constructor(options: VerdictOptions) {
    this.id = options.row.id;
    this.#options = options;
    this.#row = options.row;
    this.#decision = options.decision;
  }

  unit(): Unit | null {
    const { parts, draft, at, mark } = this.#options;
    const { recorder } = parts;
    if (!recorder.isOn) return holdersUnit(this.#row, this.#decision, draft);
    if (mark?.isUnsure) {
      this.#options.writer.expect(this.#learn(mark));
      return null;
    }
    return holdersUnit(
      this.#row,
      this.#decision,
      draft,
      recorder.recorded(this.#row, this.#decision, at, mark?.untold),
    );
  }

  /** A start that was committed, but not confirmed, would be told twice: what is in the store says whether it was. */
  async #learn(mark: StartMark): Promise<void> {
    const row = await this.#reload();
    if (row === undefined) return;
    if (row?.fence !== this.#row.fence) {
      this.done({ ok: false, because: row ? "lost" : "gone", at: row });
      return;
    }
    mark.learn(row);
    this.#options.writer.push(this);
  }

  done(outcome: Outcome): void {
    if (!outcome.ok && outcome.because === "stale" && this.#redecisions++ < MOST_REDECISIONS) {
      this.#options.writer.expect(this.#redecide());
      return;
    }
    const { parts, draft } = this.#options;
    draft?.settle?.(outcome);
    if (this.#options.trace) this.#tellTrace(this.#options.trace, outcome);
    if (outcome.ok) this.#announce();
    else if (outcome.because === "gone") parts.counters.add("unknown");
    else {
      parts.counters.add("lost");
      if (parts.bus.wants("job.lost"))
        parts.bus.emit(parts.bus.detail(this.#row, "job.lost", this.#options.at));
    }
  }

  #tellTrace(trace: AttemptTrace, { ok }: Outcome): void {
    const { parts, at } = this.#options;
    const { image, events } = this.#decision;
    const committedAt = parts.clock.now();
    trace.settled({ state: ok ? image.state : "lost", events: ok ? events : [], at, committedAt });
  }

  #announce(): void {
    const { parts, at } = this.#options;
    const { counters, bus, waiters, wakeSweepAt } = parts;
    const before = this.#options.mark?.untold;
    if (before) {
      counters.record(this.#row, before, this.#row.startedAt ?? at);
      bus.announce(this.#row, before, this.#row.startedAt ?? at);
    }
    counters.record(this.#row, this.#decision.events, at);
    bus.announce(this.#row, this.#decision.events, at);
    const { image } = this.#decision;
    if (image.wakeAt !== null && image.state !== "active") wakeSweepAt(image.wakeAt);
    if (wakesOthers(this.#row, this.#decision)) wakeSweepAt(parts.clock.now());
    if (waiters.has(this.id) && isTerminal(image.state)) waiters.settled(applied(this.#row, this.#decision));
  }

  async #redecide(): Promise<void> {
    const { parts, writer, event, at } = this.#options;
    const row = await this.#reload();
    if (row === undefined) return;
    if (!row || row.fence !== this.#row.fence) {
      this.done({ ok: false, because: row ? "lost" : "gone", at: row });
      return;
    }
    this.#row = this.#carriedOver(row);
    const judged = decide(this.#row, event, at, parts.random);
    // A start that was refused may be allowed by now, but nobody stands ready to enter the handler.
    const isEntry = event.type === "start" && judged.ok && judged.image.state === "active";
    const decision = isEntry ? decide(this.#row, { type: "release" }, at, parts.random) : judged;
    if (!decision.ok) {
      this.done({ ok: false, because: "lost", at: row });
      return;
    }
    this.#decision = decision;
    writer.push(this);
  }

  /** The row as it is now; undefined if the store did not say before the writer gave up. */
  async #reload(): Promise<JobRow | null | undefined> {
    const { parts, writer } = this.#options;
    while (!writer.isAbandoned) {
      try {
        const [row] = await parts.store.jobs.load([this.id]);
        return row ?? null;
      } catch (error) {
        parts.storeFailed(error, "load");
        await rest(parts.system, LOAD_AGAIN);
      }
    }
    return undefined;
  }

  /** The row as it is now, with what only this process knows: a start that was not marked yet, and the signal it gave. */
  #carriedOver(row: JobRow): JobRow {
    const { event } = this.#options;
    const { attempt, startedAt, waitAt, softAt, hardAt, stallAt, heartbeat, totalAt } = this.#row;
    const started = { ...row, attempt, startedAt, waitAt, policy: row.policy ?? this.#row.policy };
    // The cause is fixed at the soft signal (SEMANTICS 3.3): an extension that came after it changes nothing about it.
    const isSignalled =
      event.type === "expire" || event.type === "stall" || ("signalled" in event && event.signalled);
    // Nothing was started yet.
    if (event.type === "start") return row;
    if (isSignalled) return { ...started, softAt, hardAt, stallAt, heartbeat, totalAt };
    return row.startedAt === null ? { ...started, softAt, hardAt, stallAt, heartbeat } : started;
  }
}
