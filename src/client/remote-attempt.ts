import { softKind } from "../core/job/deadlines.ts";
import type { JobRow, Policy } from "../core/job/job.ts";
import { BUILT_IN_GRACE } from "../core/job/policy.ts";
import { type AbortReason, SHUTDOWN, StopError, TimeoutError } from "../core/job/reasons.ts";
import { timeoutError } from "../core/job/verdict.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import { AttemptScope, type ScopedAttempt } from "../engine/attempt-scope.ts";
import { CleanupHooks } from "../engine/cleanup.ts";
import type { Counters } from "../engine/counters.ts";
import { classified, judgeReturned, judgeThrown } from "../engine/judge.ts";
import type { AttemptParts } from "../engine/parts.ts";
import { isThenable, runPipeline } from "../engine/pipeline.ts";
import type { Handler, Middleware, Processor } from "../engine/processor.ts";
import { SandboxedRun } from "../engine/sandboxed-run.ts";
import { type SandboxRunner, SandboxUnavailable } from "../ports/sandbox.ts";
import { AttemptNotes } from "./attempt-notes.ts";
import type { Deadlines } from "./job-wire.ts";
import type { Verdict } from "./report-wire.ts";
import type { Transport } from "./transport.ts";

/** What the pieces of a remote worker share. */
export interface RemoteParts extends AttemptParts {
  readonly counters: Counters;
}

/** What an attempt needs of the worker that runs it. */
export interface RemoteAttemptHost {
  readonly id: string;
  readonly parts: RemoteParts;
  readonly transport: Transport;
  readonly middleware: readonly Middleware[];
  runnerOf(processor: Processor): SandboxRunner | undefined;
  /** Sends the verdict, after what was written before it. */
  report(row: JobRow, verdict: Verdict, notes: AttemptNotes | undefined): void;
  /** Its slot is free again. */
  freed(attempt: RemoteAttempt): void;
  stuck(attempt: RemoteAttempt): void;
  unstuck(attempt: RemoteAttempt): void;
  watch(attempt: RemoteAttempt): void;
  /** The handler gave a sign of life that the server should hear of. */
  beaten(attempt: RemoteAttempt): void;
}

/**
 * One attempt of a fetched job: the handler, its signal, and the one verdict on it. The server is the authority; this
 * object keeps the deadlines that the server named for as long as the handler runs, and reports what became of it.
 */
export class RemoteAttempt implements ScopedAttempt {
  readonly processor: Processor;
  /** The next instant at which something is due for this attempt; Infinity for never. */
  nextAt = Number.POSITIVE_INFINITY;
  row: JobRow;
  /** By `clock.elapsed()`: when it was entered, and when the server last heard a beat for it. */
  readonly enteredAt: number;
  beatenAt: number;
  /** The handler has given a beat that the server has not heard of. */
  hasUnsentBeat = false;
  readonly #host: RemoteAttemptHost;
  #reason: AbortReason | undefined;
  #controller: AbortController | undefined;
  #isOver = false;
  /** The hard deadline has passed: the verdict stands, even where its report waits for a moment. */
  #isForced = false;
  #isLost = false;
  #stopAt: Instant | undefined;
  #hasEnded = false;
  #hasLeft = false;
  #isInside = false;
  #onEnded: (() => void)[] | undefined;
  #rejectForced: ((reason: AbortReason) => void) | undefined;
  #notes: AttemptNotes | undefined;
  #sandbox: SandboxedRun | undefined;
  #cleanup: CleanupHooks | undefined;

  constructor(host: RemoteAttemptHost, processor: Processor, row: JobRow, now: number) {
    this.#host = host;
    this.processor = processor;
    this.row = row;
    this.enteredAt = now;
    this.beatenAt = now;
    this.#schedule();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Somebody else's verdict stands: there is nothing left to ask or to tell the server about this attempt. */
  get isLost(): boolean {
    return this.#isLost;
  }

  get policy(): Policy {
    return this.row.policy as Policy;
  }

  get parts(): RemoteParts {
    return this.#host.parts;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  run(): void {
    const scope = new AttemptScope(this);
    try {
      const parsed = this.#parsePayload(scope);
      // A schema that takes its time may take more than there was: a handler is never entered past its deadline.
      if (parsed)
        parsed
          .then(() => (this.#reason ? this.#threw(this.#reason) : this.#call(scope)))
          .catch((error) => this.#threw(error));
      else this.#call(scope);
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
      const event = judgeReturned(value, this.processor.definition.result, this.parts, this.#isTimedOut);
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
    if (this.#reason instanceof StopError && this.#reason.kind === "shutdown") this.release();
    else if (error instanceof SandboxUnavailable && !this.#isTimedOut)
      this.#settle({ type: "release", delay: error.delay });
    else this.#settle(judgeThrown(error, this.#isTimedOut));
  }

  /** Why nothing that the handler does counts any more. */
  get refusal(): AbortReason | undefined {
    return this.#isOver || this.#isLost ? (this.#reason ?? new StopError("lost", 0, null)) : undefined;
  }

  get #isTimedOut(): boolean {
    return this.#reason instanceof TimeoutError;
  }

  /** Gives the one verdict; whatever the handler does after it changes nothing. */
  #settle(verdict: Verdict): void {
    if (!this.#isLost) {
      // Past the hard deadline the server takes no notes any more, and the verdict must not wait for them.
      const isForced = verdict.type === "expire" || verdict.type === "stall";
      if (isForced) this.#notes?.abandon(this.#reason);
      this.#host.report(this.row, verdict, this.#notes);
    }
    this.#over();
  }

  #over(): void {
    this.#isOver = true;
    this.nextAt = Number.POSITIVE_INFINITY;
    // Counted before its slot is free: a slot that is free fetches at once.
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

  #whenEnded(callback: () => void): void {
    if (this.#hasEnded) callback();
    else {
      this.#onEnded ??= [];
      this.#onEnded.push(callback);
    }
  }

  /** Called when `nextAt` has come. */
  tick(now: Instant): void {
    if (this.#isOver || this.#isForced) return;
    const { softAt, hardAt } = this.row;
    const stallAt = this.#stallAt;
    if (this.#isStalled(now, stallAt)) {
      this.#stall(now, stallAt as Instant);
      return;
    }
    if (this.#reason === undefined && softAt !== null && now >= softAt) this.#timeOut(now);
    if (this.#isTimedOut && hardAt !== null && now >= hardAt) this.#force(now);
    else if (this.#stopAt !== undefined && now >= this.#stopAt) this.#over();
    this.#schedule();
  }

  /** Whether the silence came first; at one instant, total > stalled > execution (SEMANTICS 3.3). */
  #isStalled(now: Instant, stallAt: Instant | null): boolean {
    if (stallAt === null || now < stallAt || this.#reason instanceof StopError) return false;
    const { softAt } = this.row;
    if (softAt === null || this.#reason !== undefined || stallAt < softAt) return true;
    return stallAt === softAt && softKind(this.row) === "execution";
  }

  #stall(now: Instant, stallAt: Instant): void {
    this.parts.counters.fired(now - stallAt);
    const limit = this.row.heartbeat ?? 0;
    this.#reason ??= new TimeoutError("stalled", limit, now - stallAt + limit, null);
    this.#settle({ type: "stall", ...this.#sandbox?.hung() });
    // The verdict stands; the handler hears of it, so that it does not go on working for nothing.
    this.#abort(this.#reason);
  }

  #timeOut(now: Instant): void {
    this.parts.counters.fired(now - (this.row.softAt as Instant));
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

  /** The server says that the soft deadline has passed; it may know the time better. */
  hearSoftSignal(): void {
    const { softAt } = this.row;
    if (this.#isOver || this.#reason || softAt === null) return;
    this.#timeOut(Math.max(softAt, this.parts.clock.now()));
    this.#schedule();
  }

  /** Cancelled or lost: the verdict is already somebody else's, so the handler only gets its grace to clean up. */
  stop(kind: "cancelled" | "lost"): void {
    if (this.#isOver || this.#isLost) return;
    const now = this.parts.clock.now();
    this.#stopAt = now + (this.policy.grace ?? BUILT_IN_GRACE);
    this.#isLost = true;
    if (kind === "lost") this.#tellLost(now);
    this.#abort(new StopError(kind, now - (this.row.startedAt as Instant), this.#stopAt));
    this.#notes?.abandon(this.#reason);
    this.#whenEnded(() => this.#isOver || this.#over());
    this.#schedule();
  }

  #tellLost(now: Instant): void {
    const { bus, counters } = this.parts;
    counters.add("lost");
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
    if (this.#isTimedOut) this.#settle({ type: "fail", error: SHUTDOWN, signalled: true });
    else this.#settle({ type: "release", error: SHUTDOWN });
  }

  #abort(reason: AbortReason): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    this.#cleanup?.run();
  }

  onCleanup(hook: () => void | Promise<void>): void {
    this.#cleanup ??= new CleanupHooks(this.parts, () => this.row);
    this.#cleanup.add(hook, this.#reason !== undefined);
  }

  /** A sign of life of the handler: it moves `stallAt` and nothing else (SEMANTICS 3.6). */
  beat(): void {
    const { heartbeat, stallAt } = this.row;
    if (this.refusal || stallAt === null || heartbeat === null) return;
    this.row = { ...this.row, stallAt: this.parts.clock.now() + heartbeat };
    this.hasUnsentBeat = true;
    this.#schedule();
    this.#host.beaten(this);
  }

  progress(fraction: number, note: Json | undefined): void {
    if (this.refusal) {
      this.#ignored();
      return;
    }
    this.#journal.progress(fraction, note);
    this.beat();
  }

  checkpoint(state: Json): Promise<void> {
    const { refusal } = this;
    if (refusal) this.#ignored();
    const durable = refusal ? Promise.reject(refusal) : this.#journal.checkpoint(state);
    // A handler that does not wait for it must not take the process down with an unhandled rejection.
    durable.catch(() => {});
    this.beat();
    return durable;
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.refusal) this.#ignored();
    else this.#journal.log(message, fields);
  }

  /** Made on first use: most handlers report nothing. */
  get #journal(): AttemptNotes {
    const { id, transport } = this.#host;
    const { parts, row } = this;
    this.#notes ??= new AttemptNotes({ parts, transport, row, worker: id, lost: () => this.stop("lost") });
    return this.#notes;
  }

  /** The server names other deadlines than before (an extension): they hold from now on. */
  refresh({ softAt, hardAt, totalAt, stallAt, silence }: Deadlines): void {
    // What was signalled stays signalled (SEMANTICS 3.3).
    if (this.#isOver || this.#isLost || this.#reason) return;
    const { row } = this;
    const heartbeat = silence === undefined ? row.heartbeat : silence;
    const isSame =
      softAt === row.softAt &&
      hardAt === row.hardAt &&
      totalAt === row.totalAt &&
      heartbeat === row.heartbeat;
    if (isSame) return;
    // A new heartbeat counts from the extension; otherwise our own beats know better than the server's last one.
    const isSilenceKept = heartbeat === row.heartbeat || this.policy.beats === "worker";
    const ownStallAt = isSilenceKept ? row.stallAt : stallAt;
    this.row = { ...row, softAt, hardAt, totalAt, heartbeat, stallAt: ownStallAt };
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
