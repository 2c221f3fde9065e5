import { restarted, softKind } from "../core/job/deadlines.ts";
import { decide } from "../core/job/decide.ts";
import type { JobEvent } from "../core/job/events.ts";
import type { JobRow, Policy } from "../core/job/job.ts";
import { extendedAttempt } from "../core/job/operator-rules.ts";
import { BUILT_IN_GRACE } from "../core/job/policy.ts";
import { type AbortReason, SHUTDOWN, StopError, TimeoutError } from "../core/job/reasons.ts";
import { timeoutError } from "../core/job/verdict.ts";
import { writtenRow } from "../core/job/written-row.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import { type SandboxRunner, SandboxUnavailable } from "../ports/sandbox.ts";
import type { Refused } from "../ports/store.ts";
import type { AttemptTrace } from "../ports/trace.ts";
import { AttemptScope, type ScopedAttempt } from "./attempt-scope.ts";
import { CleanupHooks } from "./cleanup.ts";
import type { Decided } from "./decision-unit.ts";
import { Journal } from "./journal.ts";
import { classified, judgeReturned, judgeThrown } from "./judge.ts";
import type { Parts } from "./parts.ts";
import { isThenable, runPipeline } from "./pipeline.ts";
import type { Handler, Middleware, Processor } from "./processor.ts";
import { SandboxedRun } from "./sandboxed-run.ts";
import { type MarkedAttempt, StartMark } from "./start-mark.ts";
import { VerdictWrite } from "./verdict-write.ts";
import type { Writer } from "./writer.ts";

/** What an attempt needs of the worker that runs it. */
export interface AttemptHost {
  readonly parts: Parts;
  readonly writer: Writer;
  readonly middleware: readonly Middleware[];
  /** What runs the attempts of a sandboxed processor. */
  runnerOf(processor: Processor): SandboxRunner | undefined;
  /** Its slot is free again: the verdict was given, or there is none left to give. */
  freed(attempt: Attempt): void;
  /** The handler ran past its verdict; until it ends, the process carries it. */
  stuck(attempt: Attempt): void;
  unstuck(attempt: Attempt): void;
  watch(attempt: Attempt): void;
  /** Somebody else wrote the row: it has to be read again. */
  changed(attempt: Attempt): void;
  /** The handler gave a sign of life that the store should hear of. */
  beaten(attempt: Attempt): void;
}

/**
 * One attempt: the handler, its signal, and the one verdict on it. The row is the truth about its deadlines; this
 * object only watches them for as long as the handler runs.
 */
export class Attempt implements ScopedAttempt, MarkedAttempt {
  readonly processor: Processor;
  /** The next instant at which something is due for this attempt; Infinity for never. */
  nextAt = Number.POSITIVE_INFINITY;
  /** By `clock.elapsed()`, for measuring how long handlers run. */
  readonly enteredAt: number;
  readonly mark: StartMark;
  row: JobRow;
  readonly #host: AttemptHost;
  #reason: AbortReason | undefined;
  #controller: AbortController | undefined;
  #isOver = false;
  /** The hard deadline has passed: the verdict stands, even where its writing waits for a moment. */
  #isForced = false;
  /** Somebody else's verdict stands: this one would be refused. */
  #isLost = false;
  /** Until when the handler of a cancelled or lost job may hold its slot. */
  #stopAt: Instant | undefined;
  /** The handler has returned or thrown; an attempt can be over before that, and is stuck then. */
  #hasEnded = false;
  /** Middleware may give up on a handler that goes on: only the end of both is the end. */
  #hasLeft = false;
  #isInside = false;
  #onEnded: (() => void)[] | undefined;
  #rejectForced: ((reason: AbortReason) => void) | undefined;
  #journal: Journal | undefined;
  #sandbox: SandboxedRun | undefined;
  #trace: AttemptTrace | undefined;
  #cleanup: CleanupHooks | undefined;
  /** The last beat of the handler that the store has not heard of. */
  unsentStallAt: Instant | undefined;

  constructor(host: AttemptHost, processor: Processor, row: JobRow, start: Decided) {
    this.#host = host;
    this.processor = processor;
    // The start is not committed yet, so the revision in the store is still the one of the claim.
    this.row = writtenRow(row, start, row.rev);
    this.enteredAt = host.parts.clock.elapsed();
    this.mark = new StartMark(this, host.writer);
    this.#schedule();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get policy(): Policy {
    return this.row.policy as Policy;
  }

  /** Made on first use: a controller per job would cost more than the rest of a small job. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get parts(): Parts {
    return this.#host.parts;
  }

  run(): void {
    const scope = new AttemptScope(this);
    try {
      const parsed = this.#parsePayload(scope);
      // A schema that takes its time may take more than there was: a handler is never entered past its deadline.
      if (parsed)
        parsed
          .then(() => (this.#reason ? this.#threw(this.#reason) : this.#enter(scope)))
          .catch((error) => this.#threw(error));
      else this.#enter(scope);
    } catch (error) {
      this.#threw(error);
    }
  }

  #parsePayload(scope: AttemptScope): Promise<void> | undefined {
    const schema = this.processor.definition.payload;
    // A sandbox parses its payload inside; here it is parsed only for middleware, which sees what the handler sees.
    const isParsedInside = this.processor.sandbox && this.#host.middleware.length === 0;
    return schema && !isParsedInside ? scope.parse(schema) : undefined;
  }

  #enter(scope: AttemptScope): void {
    this.#trace = this.parts.tracing?.enter(this.row);
    if (this.#trace) this.#trace.run(() => this.#call(scope));
    else this.#call(scope);
  }

  #call(scope: AttemptScope): void {
    const { middleware } = this.#host;
    const handler = this.#handler;
    let returned: unknown;
    if (middleware.length > 0) {
      const forced = new Promise<never>((_, reject) => {
        this.#rejectForced = reject;
      });
      forced.catch(() => {});
      returned = runPipeline(middleware, handler, scope, {
        forced,
        classify: (error) => classified(this.#reason, error),
        inside: (isInside) => {
          this.#isInside = isInside;
          if (!isInside && this.#hasLeft) this.#ended();
        },
      });
    } else returned = handler(scope as never);
    if (isThenable(returned)) {
      returned.then(
        (value) => this.#returned(value),
        (error) => this.#threw(error),
      );
    } else this.#returned(returned);
  }

  get #handler(): Handler<never, unknown> {
    const runner = this.#host.runnerOf(this.processor);
    if (!runner) return this.processor.handler;
    return () => {
      this.#sandbox = new SandboxedRun(this, runner);
      this.#schedule();
      return this.#sandbox.run.result as Promise<never>;
    };
  }

  #returned(value: unknown): void {
    this.#ended();
    if (this.#isOver || this.#isForced) {
      this.#ignored();
      return;
    }
    try {
      const signalled = this.#isTimedOut;
      const event = judgeReturned(value, this.processor.definition.result, this.parts, signalled);
      if (event instanceof Promise)
        event.then(
          (later) => this.#isOver || this.#settle(later),
          (error) => this.#isOver || this.#fail(error),
        );
      else this.#settle(event);
    } catch (error) {
      this.#fail(error);
    }
  }

  #threw(error: unknown): void {
    this.#ended();
    if (!this.#isOver && !this.#isForced) this.#fail(error);
    // The end of a sandbox that was ended by force is no late report.
    else if (!this.#sandbox) this.#ignored();
  }

  #ignored(): void {
    this.parts.counters.add("ignored");
  }

  /** Classified by the state of our own signal, never by the class of the error (SEMANTICS 3.5). */
  #fail(error: unknown): void {
    if (this.#reason instanceof StopError && this.#reason.kind === "shutdown") {
      this.release();
      return;
    }
    if (error instanceof SandboxUnavailable && !this.#isTimedOut) {
      this.#settle({ type: "release", delay: error.delay });
      return;
    }
    this.#settle(judgeThrown(error, this.#isTimedOut));
  }

  /** Why nothing that the handler does counts any more. */
  get refusal(): AbortReason | undefined {
    return this.#isRefused ? (this.#reason ?? new StopError("lost", 0, null)) : undefined;
  }

  get #isRefused(): boolean {
    return this.#isOver || this.#isLost;
  }

  get #isTimedOut(): boolean {
    return this.#reason instanceof TimeoutError;
  }

  /** Gives the one verdict; whatever the handler does after it changes nothing. */
  #settle(event: JobEvent): void {
    if (this.#isLost) {
      this.#over();
      return;
    }
    const { parts, writer } = this.#host;
    const at = parts.clock.now();
    const decision = decide(this.row, event, at, parts.random);
    if (!decision.ok) {
      parts.logger.error(
        { job: this.row.id, event: event.type, because: decision.because },
        "a verdict was refused",
      );
      this.#over();
      return;
    }
    const { mark } = this;
    const row = mark.nextRev === this.row.rev ? this.row : { ...this.row, rev: mark.nextRev };
    const draft = this.#journal?.take();
    const trace = this.#trace;
    writer.push(new VerdictWrite({ parts, writer, row, event, decision, at, mark, draft, trace }));
    this.#over();
  }

  #over(): void {
    this.#isOver = true;
    this.nextAt = Number.POSITIVE_INFINITY;
    // Counted before its slot is free: a slot that is free claims at once.
    if (!this.#hasEnded) this.#leave();
    this.#host.freed(this);
  }

  /** The verdict stands while the handler runs: a sandbox is ended, a handler in this process can only be counted. */
  #leave(): void {
    this.#rejectForced?.(this.#reason ?? new StopError("lost", 0, null));
    if (!this.#sandbox) this.#host.stuck(this);
    else void this.#sandbox.end().then((isGone) => isGone || this.#host.stuck(this));
  }

  #ended(): void {
    this.#hasLeft = true;
    if (this.#isInside) return;
    this.#hasEnded = true;
    if (this.#isOver) this.#host.unstuck(this);
    for (const callback of this.#onEnded ?? []) callback();
    this.#onEnded = undefined;
  }

  /** Resolves when the handler has returned or thrown. */
  ended(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEnded ??= [];
      this.#onEnded.push(resolve);
    });
  }

  /** Called when `nextAt` has come. */
  tick(now: Instant): void {
    if (this.#isOver || this.#isForced) return;
    const { softAt, hardAt } = this.row;
    const stallAt = this.#stallAt;
    const isSoftDue = this.#reason === undefined && softAt !== null && now >= softAt;
    const isStallFirst =
      stallAt !== null &&
      now >= stallAt &&
      (softAt === null ||
        stallAt < softAt ||
        (stallAt === softAt && softKind(this.row) === "execution") ||
        this.#reason !== undefined);
    if (isStallFirst && !(this.#reason instanceof StopError)) {
      this.parts.counters.fired(now - stallAt);
      this.#stall(now, stallAt);
      return;
    }
    if (isSoftDue) {
      this.parts.counters.fired(now - softAt);
      this.#timeOut(now);
    }
    if (this.#isTimedOut && hardAt !== null && now >= hardAt) this.#force(now);
    else if (this.#stopAt !== undefined && now >= this.#stopAt) this.#over();
    this.#schedule();
  }

  #stall(now: Instant, stallAt: Instant): void {
    const heartbeat = this.row.heartbeat ?? 0;
    this.row = { ...this.row, stallAt };
    this.#reason ??= new TimeoutError("stalled", heartbeat, now - stallAt + heartbeat, null);
    this.#settle({ type: "stall", ...this.#sandbox?.hung() });
    // The verdict stands; the handler hears of it, so that it does not go on working for nothing.
    this.#abort(this.#reason);
  }

  #timeOut(now: Instant): void {
    const { kind = "execution", limit = 0, elapsed = 0 } = timeoutError(this.row, now, {});
    this.#abort(new TimeoutError(kind, limit, elapsed, this.row.hardAt));
  }

  #force(now: Instant): void {
    this.parts.counters.fired(now - (this.row.hardAt as Instant));
    this.#isForced = true;
    const settle = () =>
      this.#isOver || this.#settle({ type: "expire", forced: true, ...this.#sandbox?.hung() });
    if (this.#sandbox) void this.#sandbox.condemn().then(settle);
    else settle();
  }

  /** Cancelled or lost: the verdict is already somebody else's, so the handler only gets its grace to clean up. */
  stop(kind: "cancelled" | "lost"): void {
    // Every further beat says so again; the grace counts from the first time.
    if (this.#isOver || this.#isLost) return;
    const now = this.parts.clock.now();
    this.#stopAt = now + (this.policy.grace ?? BUILT_IN_GRACE);
    this.#isLost = true;
    if (kind === "lost") this.#tellLost(now);
    this.#abort(new StopError(kind, now - (this.row.startedAt as Instant), this.#stopAt));
    if (this.#hasEnded) this.#over();
    else void this.ended().then(() => !this.#isOver && this.#over());
    this.#schedule();
  }

  /** Its verdict would be refused, so it is counted here instead of being sent (SEMANTICS 3.8). */
  #tellLost(now: Instant): void {
    const { bus, counters } = this.parts;
    counters.add("lost");
    this.#trace?.settled({ state: "lost", events: [], at: now, committedAt: now });
    if (bus.wants("job.lost")) bus.emit(bus.detail(this.row, "job.lost", now));
  }

  /** The worker shuts down: hear it, clean up, and give the job back (SEMANTICS 5.2). */
  shutDown(deadline: Instant): void {
    if (this.#isOver || this.#reason) return;
    this.#abort(
      new StopError("shutdown", this.parts.clock.now() - (this.row.startedAt as Instant), deadline),
    );
  }

  /** Gives the job back without spending the attempt; one that was already timing out is judged as that timeout. */
  release(): void {
    if (this.#isOver) return;
    if (this.#isLost) this.#over();
    else if (this.#isTimedOut) this.#settle({ type: "fail", error: SHUTDOWN, signalled: true });
    else this.#settle({ type: "release", error: SHUTDOWN });
  }

  /** The commit of the start took longer than the budget: the handler was never entered, so the attempt is not spent. */
  giveBackUnentered(): void {
    this.#hasEnded = true;
    this.#settle({ type: "release" });
  }

  /** Lets the clocks of a start that was committed first run from now; false if its time is up. The store hears of it with the next marks. */
  startAnew(): boolean {
    const { softAt } = this.row;
    const { clock } = this.parts;
    const row = softAt !== null && clock.upper() >= softAt ? null : restarted(this.row, clock.now());
    if (!row) return false;
    this.row = row;
    this.mark.again();
    this.#schedule();
    return true;
  }

  /** Somebody else wrote the row under the same fence: it has to be read again. */
  changed(): void {
    this.#host.changed(this);
  }

  /** A write of this attempt was refused: the fence is no longer ours. */
  refused(outcome: Refused): void {
    this.stop(outcome.at?.state === "cancelled" ? "cancelled" : "lost");
  }

  #abort(reason: AbortReason): void {
    this.#reason ??= reason;
    this.#trace?.aborted(this.#reason);
    this.#controller?.abort(this.#reason);
    this.#cleanup?.run();
  }

  onCleanup(hook: () => void | Promise<void>): void {
    this.#cleanup ??= new CleanupHooks(this.parts, () => this.row);
    this.#cleanup.add(hook, this.#reason !== undefined);
  }

  /** A sign of life of the handler: it moves `stallAt` and nothing else (SEMANTICS 3.6). */
  beat(): void {
    const { policy } = this;
    if (
      this.#isOver ||
      this.row.stallAt === null ||
      policy.beats !== "handler" ||
      this.row.heartbeat === null
    )
      return;
    const stallAt = this.parts.clock.now() + this.row.heartbeat;
    this.row = { ...this.row, stallAt };
    this.unsentStallAt = stallAt;
    this.#schedule();
    this.#host.beaten(this);
  }

  /** Made on first use: most handlers report nothing. */
  get #notes(): Journal {
    this.#journal ??= new Journal(this.parts, this.#host.writer, this);
    return this.#journal;
  }

  progress(fraction: number, note: Json | undefined): void {
    if (this.#isRefused) {
      this.#ignored();
      return;
    }
    this.#notes.progress(fraction, note);
    this.beat();
  }

  checkpoint(state: Json): Promise<void> {
    const { refusal } = this;
    if (refusal) this.#ignored();
    const durable = refusal ? Promise.reject(refusal) : this.#notes.checkpoint(state);
    // A handler that does not wait for it must not take the process down with an unhandled rejection.
    durable.catch(() => {});
    this.beat();
    return durable;
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.#isRefused) this.#ignored();
    else this.#notes.log(message, fields);
  }

  /** The row changed under the same fence (an extension): its limits hold from now on. */
  refresh(row: JobRow): void {
    if (this.#isOver || row.fence !== this.row.fence) return;
    const isMarked = row.startedAt !== null;
    // What was signalled stays signalled (SEMANTICS 3.3): only the revision is news then.
    if (this.#reason) this.row = { ...this.row, rev: row.rev };
    else this.row = extendedAttempt(this.row, row, this.parts.clock.now());
    if (isMarked) this.mark.found();
    else this.mark.redo();
    this.#sandbox?.refreshed();
    this.#schedule();
  }

  /** The end of the silence that is allowed to the handler, or to the event loop of its sandbox (SEMANTICS 3.6). */
  get #stallAt(): Instant | null {
    return this.row.stallAt ?? this.#sandbox?.stallAt ?? null;
  }

  #schedule(): void {
    const { softAt, hardAt } = this.row;
    const stallAt = this.#stallAt;
    let nextAt = this.#stopAt ?? Number.POSITIVE_INFINITY;
    if (this.#reason === undefined && softAt !== null) nextAt = softAt;
    else if (this.#isTimedOut && hardAt !== null) nextAt = hardAt;
    if (stallAt !== null && stallAt < nextAt && !(this.#reason instanceof StopError)) nextAt = stallAt;
    if (this.#isOver || this.#isForced) nextAt = Number.POSITIVE_INFINITY;
    this.nextAt = nextAt;
    if (nextAt !== Number.POSITIVE_INFINITY) this.#host.watch(this);
  }
}
